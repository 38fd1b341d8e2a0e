// Requests to the server. Errors carry a message for the reviewer.

export class RequestError extends Error {
  constructor(status, content) {
    super(content.message || `The server responded with status ${status}.`);
    this.status = status;
    this.content = content;
  }
}

async function request(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new RequestError(0, { message: "The review server is not responding. Nothing was stored: restart it and continue." });
  }
  const isJson = (response.headers.get("content-type") || "").includes("json");
  const content = isJson ? await response.json() : { message: await response.text() };
  if (!response.ok) throw new RequestError(response.status, content);
  return content;
}

export const get = (path) => request("GET", path);
export const post = (path, body) => request("POST", path, body);
