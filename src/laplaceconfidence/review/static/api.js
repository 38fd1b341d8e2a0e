// Requests to the server. The error says if nothing was stored.

export class Refused extends Error {
  constructor(status, content) {
    super(content.message || `The server answered ${status}.`);
    this.status = status;
    this.content = content;
  }
}

async function ask(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, { message: "The review server does not answer. Nothing was stored; restart it and continue." });
  }
  const isJson = (response.headers.get("content-type") || "").includes("json");
  const content = isJson ? await response.json() : { message: await response.text() };
  if (!response.ok) throw new Refused(response.status, content);
  return content;
}

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);
