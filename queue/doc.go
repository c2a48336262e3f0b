// Package queue owns asynq and Redis: ringing workers, running their handlers,
// telling live readers that rows were added, counting events against limits, and
// showing all of that to operators.
//
// Everything here is a bell. A task names a row to look at and carries no fact, so
// losing any or all of Redis costs time and never work: the sweep rings again what
// is overdue. The package never reads or writes the database, never decides
// anything about a row, and never fails a caller because Redis is away.
package queue
