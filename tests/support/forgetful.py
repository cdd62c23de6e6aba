"""A buyer's model that counts how often it was asked, and answers by that: what no checkpoint of
ours can know."""

import torch


class Forgetful(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.linear = torch.nn.Linear(features, classes)
        self.asked = 0

    def forward(self, x):
        self.asked += 1
        return self.linear(x) * (1 + 0.01 * (self.asked % 7))
