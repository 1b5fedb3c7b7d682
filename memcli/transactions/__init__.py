"""Transactions, the gate and the cascade as rules: pure functions over records that the store gives."""
