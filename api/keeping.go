package api

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"openbot/domain"
	"openbot/domain/engine"
)

// Keyed is the input of every POST: the key under which its answer is kept.
type Keyed struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"1 to 200 visible characters. The first successful answer under it is kept for 24 hours and given again; secrets are left out. The same key with another body is a conflict."`
}

// lookUpKey takes the Idempotency-Key and gives the answer that is kept under it.
func (s *server) lookUpKey(ctx context.Context, i *info, h http.Header) error {
	values, given := h["Idempotency-Key"]
	if !given {
		return nil
	}
	if len(values) != 1 || !visible(values[0]) {
		return invalid("Idempotency-Key", "must be one header of 1 to 200 visible ASCII characters")
	}
	i.key = values[0]
	return s.Engine.Kept(ctx, &engine.Keeping{Member: i.principal.Member.ID, Key: i.key, Fingerprint: hex.EncodeToString(i.body[:])})
}

func visible(key string) bool {
	return key != "" && len(key) <= 200 && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// keep asks the engine to keep the answer of the next command when the caller sent
// a key. wire gives the body of the answer without secrets.
func keep[R, T any](ctx context.Context, wire func(R) T) context.Context {
	i := infoFrom(ctx)
	if i.key == "" {
		return ctx
	}
	return engine.WithKeeping(ctx, keeping(i, i.key, wire))
}

func keeping[R, T any](i *info, key string, wire func(R) T) *engine.Keeping {
	return &engine.Keeping{Member: i.principal.Member.ID, Key: key, Fingerprint: hex.EncodeToString(i.body[:]), Status: i.route.status,
		Render: func(result any) ([]byte, error) {
			r, ok := result.(R)
			if !ok {
				return nil, fmt.Errorf("the command gave %T to keep, not %T", result, r)
			}
			return encode(wire(r)), nil
		}}
}

// replayed gives a kept answer again, as things stand now where the route says so.
func (s *server) replayed(ctx context.Context, kept domain.KeptAnswer) error {
	i := infoFrom(ctx)
	if i.route != nil && i.route.fresh != nil {
		body, err := i.route.fresh(ctx, i.principal, kept.Body)
		if err != nil {
			return problemOf(err)
		}
		kept.Body = body
	}
	return &replay{kept: kept}
}

// keepCommand keeps the answer of a command under a commandKey of its body, which is the
// same thing as an Idempotency-Key but lives as long as a Chat. Without one it is keep.
func keepCommand[R, W any](ctx context.Context, s *server, p domain.Principal, key string, chat domain.ChatID, wire func(R) W) (context.Context, error) {
	ctx = keep(ctx, wire)
	if key == "" {
		return ctx, nil
	}
	i := infoFrom(ctx)
	if !visible(key) {
		return ctx, invalid("commandKey", "must be 1 to 200 visible ASCII characters")
	}
	if i.key != "" && i.key != key {
		return ctx, invalid("commandKey", "is the same thing as the Idempotency-Key and must say the same")
	}
	if i.key == "" {
		if err := s.Engine.Kept(ctx, &engine.Keeping{Member: p.Member.ID, Key: key, Fingerprint: hex.EncodeToString(i.body[:])}); err != nil {
			return ctx, err
		}
	}
	k := keeping(i, key, wire)
	k.Chat = chat
	return engine.WithKeeping(ctx, k), nil
}
