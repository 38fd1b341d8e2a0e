"""Which labels are wrong, how certain is that, and what should they be? On digits with known mistakes."""

from laplaceconfidence import add_noise, audit, load_digits

digits = add_noise(load_digits(), "symmetric", 0.1, random_state=0)
result = audit(digits, random_state=0)

print(result)
print(result.table.head(5).to_string(index=False))
print(result.confused_pairs.head(3).to_string(index=False))

worst = result.table.iloc[0]
print(result.explain(worst.id))

wrong = digits.labels != digits.true_labels
flagged = result.table.sort_index()["is_label_issue"].to_numpy()
print(
    f"{(wrong & flagged).sum()} of {wrong.sum()} wrong labels found, {(flagged & ~wrong).sum()} false alarms"
)
