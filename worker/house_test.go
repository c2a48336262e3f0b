package worker_test

import (
	"path/filepath"
	"testing"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/model"
	"openbot/repository"
)

// house is an engine on a store of its own, with one Member and what it rang for.
type house struct {
	store  *repository.Store
	engine *engine.Engine
	me     domain.Principal
	rung   *bell
}

// newHouse adds to the options what a test does not choose.
func newHouse(t *testing.T, o engine.Options) house {
	t.Helper()
	ctx := t.Context()
	store, err := repository.Open(ctx, repository.Options{File: filepath.Join(t.TempDir(), "openbot.db")})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	must(t, store.Migrate(ctx))
	rung := &bell{}
	o.Store, o.Ringer, o.Live, o.Sealer, o.DefaultModel = store, rung, silence{}, plain{}, "playbook"
	e := engine.New(o)
	secret, err := e.FirstStart(ctx, "")
	must(t, err)
	me, err := e.Authenticate(ctx, secret)
	must(t, err)
	return house{store, e, me, rung}
}

func newPlaybook(t *testing.T) *model.Models {
	t.Helper()
	playbook := model.New(model.Options{})
	t.Cleanup(playbook.Close)
	return playbook
}
