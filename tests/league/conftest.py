from tests.support.small_card import small_card

__all__ = ["small_card"]
