"""Mini-batches with a second-order method: each step has a batch of its own, and each pair (s, y) comes from one batch.

With `reuse=False`, the default, a step first evaluates its batch where it stands. Every loss and every gradient of the
step then belongs to that batch, so y measures curvature and not the difference between two batches. A few iterations
on a large batch work better than one on a small batch, and `gamma="norm"` better than the default, made for full
batches; `signedstep.LBFGS` is a good choice here too.
"""

import torch
from torch import nn

import signedstep


def main(epochs: int = 10, batch_size: int = 512) -> tuple[float, float]:
    """Train a classifier; the loss over all data before and after."""
    torch.manual_seed(0)
    x = torch.randn(2048, 10)
    y = ((x[:, :1] * x[:, 1:2] + x[:, 2:3]) > 0).float()
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = signedstep.LSR1(model.parameters(), max_iter=3, history_size=10, gamma="norm")
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)

    def full_loss() -> float:
        with torch.no_grad():
            return loss_function(model(x), y).item()

    first = full_loss()
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(batch_size):

            def closure(rows: torch.Tensor = rows) -> torch.Tensor:
                optimizer.zero_grad()
                loss = loss_function(model(x[rows]), y[rows])
                loss.backward()
                return loss

            optimizer.step(closure)
        scheduler.step()
        print(f"epoch {epoch + 1:2}  loss over all data {full_loss():.4f}  closure calls {optimizer.n_evals}")
    return first, full_loss()


if __name__ == "__main__":
    main()
