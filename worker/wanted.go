package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"openbot/domain"
)

// errNotWanted ends what nobody waits for any more.
var errNotWanted = errors.New("this is not wanted any more")

// whileWanted does work that may take long. push moves its due time ahead meanwhile, so
// that nobody else starts it, and says whether it is still wanted; work that is not is cut
// off, and the error is errNotWanted. A push that fails says nothing.
func whileWanted[T any](ctx context.Context, push func(context.Context) (wanted bool, err error), work func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	var pushing sync.WaitGroup
	pushing.Go(func() {
		tick := time.NewTicker(domain.LeaseRenewal)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if wanted, err := push(ctx); err == nil && !wanted {
					cancel(errNotWanted)
					return
				}
			}
		}
	})
	result, err := work(ctx)
	close(done)
	pushing.Wait()
	if errors.Is(context.Cause(ctx), errNotWanted) {
		err = errNotWanted
	}
	return result, err
}
