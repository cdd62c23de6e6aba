"""Mechanisms of budget-feasible procurement that papers compare with. One file a mechanism.

In the words of that literature, seller i has an item of value v_i to the buyer, which costs her
c_i. Here the item is the owner's whole sale: v_i is what it counts as (`value`, ranking_value.py),
and c_i is what she asks for her whole privacy budget. x_i = c_i / v_i is her ratio.

In that literature values are public. In this market they follow from the privacy budget and the
records that an owner reports, so she can understate v_i. A mechanism that is truthful for public
values need not be truthful here: each file says what holds.
"""
