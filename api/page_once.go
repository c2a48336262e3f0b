package api

import (
	"encoding/json"
	"errors"

	"openbot/domain/engine"
)

func isKept(err error) bool {
	var kept *engine.KeptError
	return errors.As(err, &kept)
}

// keptOr reads what a command made, also when an equal form was sent before: then it
// stands in the answer that was kept.
func keptOr[T, R any](err error, from func(T) R, made func() R) (R, error) {
	var kept *engine.KeptError
	if errors.As(err, &kept) {
		var body T
		if err := json.Unmarshal(kept.Answer.Body, &body); err != nil {
			var none R
			return none, err
		}
		return from(body), nil
	}
	if err != nil {
		var none R
		return none, err
	}
	return made(), nil
}
