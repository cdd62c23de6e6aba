import torch


class TinyNet(torch.nn.Module):
    """A model of a buyer's own."""

    def __init__(self, features, classes):
        super().__init__()
        self.layer = torch.nn.Linear(features, classes)

    def forward(self, x):
        return self.layer(x)
