package engine

import (
	"context"
	"time"
)

// beatGap is how long no server may note itself before the time counts as lost. A
// scheduler notes itself every few seconds.
const beatGap = 30 * time.Second

// Beat notes that a server runs. Time in which none did is given back to plans that
// run when nobody answers: nobody could have answered.
func (e *Engine) Beat(ctx context.Context) error { return e.Store.Beat(ctx, e.now(), beatGap) }
