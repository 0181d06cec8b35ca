mod breaks;
mod hostile;
mod pair;
mod races;
mod refusals;
mod story;
mod tshark;
