//! Notes: taken in, found again, kept in order.

