mod breaks;
mod hostile;
mod pair;
mod refusals;
mod story;
mod tshark;
