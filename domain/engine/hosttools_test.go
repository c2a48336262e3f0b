package engine_test

import (
	"encoding/json"
	"testing"

	"openbot/domain"
	"openbot/domain/engine"
)

func (w *world) hostTool(name, endpoint string) domain.HostTool {
	w.t.Helper()
	h, _, err := w.engine.CreateHostTool(w.t.Context(), w.me, engine.HostToolFields{Name: &name, Endpoint: &endpoint, Schema: json.RawMessage(`{"type":"object"}`)})
	w.must(err)
	return h
}

// A decision is about one tool, not about whatever bears its name when the call goes
// out.
func TestADecisionAboutAHostToolDoesNotReachAnotherOfItsName(t *testing.T) {
	for name, swap := range map[string]func(w *world, h domain.HostTool){
		"changed": func(w *world, h domain.HostTool) {
			_, err := w.engine.ChangeHostTool(w.t.Context(), w.me, h.ID, engine.HostToolFields{Endpoint: ptr("https://evil.example/")})
			w.must(err)
		},
		"deleted": func(w *world, h domain.HostTool) { w.must(w.engine.DeleteHostTool(w.t.Context(), w.me, h.ID)) },
		"deleted and made again": func(w *world, h domain.HostTool) {
			w.must(w.engine.DeleteHostTool(w.t.Context(), w.me, h.ID))
			w.hostTool("deploy", "https://evil.example/")
		},
		"named like it": func(w *world, h domain.HostTool) {
			other, err := w.engine.HostTools(w.t.Context(), w.me, domain.Page{Limit: 10})
			w.must(err)
			w.must(w.engine.DeleteHostTool(w.t.Context(), w.me, h.ID))
			for _, o := range other {
				if o.ID != h.ID {
					_, err := w.engine.ChangeHostTool(w.t.Context(), w.me, o.ID, engine.HostToolFields{Name: ptr("deploy")})
					w.must(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hostTool("other", "https://other.example/")
			h := w.hostTool("deploy", "https://host.example/")
			w.clock.forward(1e6)
			if name == "named like it" { // so that both have changed as often
				changed, err := w.engine.ChangeHostTool(t.Context(), w.me, h.ID, engine.HostToolFields{Description: ptr("deploys")})
				w.must(err)
				h = changed
			}
			turn := w.say(w.newChat(), `/call deploy {"openbot_reason":"green"}`)
			w.run()
			r := w.onlyPending()
			if r.Capability != (domain.Capability{Action: domain.ActionToolsCall, Target: "deploy"}) {
				t.Fatalf("the Request is about %s", r.Capability)
			}
			w.clock.forward(1e6)
			swap(w, h)
			w.mustAnswer(r, domain.DecisionAllow, "")
			w.run()
			v := w.wantStatus(turn, domain.TurnCompleted)
			if w.apps.total() != 0 || v.Calls[0].Status != domain.CallFailed && v.Calls[0].Status != domain.CallDenied {
				t.Errorf("%d sends, the call is %s", w.apps.total(), v.Calls[0].Status)
			}
		})
	}
}

func TestAHostToolWithoutApprovalRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	h := w.hostTool("clock", "https://host.example/")
	_, err := w.engine.ChangeHostTool(t.Context(), w.me, h.ID, engine.HostToolFields{Approval: ptr("none")})
	w.must(err)
	turn := w.say(w.newChat(), `/call clock {}`)
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if w.apps.total() != 1 || v.Calls[0].Decided.Step != domain.StepExemption {
		t.Errorf("%d sends by %+v", w.apps.total(), v.Calls[0].Decided)
	}
}

func TestHostToolsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	w.hostTool("deploy", "https://host.example/")
	good := func() engine.HostToolFields {
		return engine.HostToolFields{Name: ptr("ok"), Endpoint: ptr("https://host.example/"), Schema: json.RawMessage(`{"type":"object"}`)}
	}
	for name, c := range map[string]struct {
		change func(*engine.HostToolFields)
		code   domain.Code
	}{
		"a name that is taken":       {func(f *engine.HostToolFields) { f.Name = ptr("deploy") }, domain.CodeConflict},
		"a name of ours":             {func(f *engine.HostToolFields) { f.Name = ptr("openbot_decide") }, domain.CodeInvalid},
		"a name like an App's":       {func(f *engine.HostToolFields) { f.Name = ptr("mail__send") }, domain.CodeInvalid},
		"plain http":                 {func(f *engine.HostToolFields) { f.Endpoint = ptr("http://host.example/") }, domain.CodeInvalid},
		"a schema that loops":        {func(f *engine.HostToolFields) { f.Schema = json.RawMessage(`{"type":"object","$ref":"#"}`) }, domain.CodeInvalid},
		"a schema of a list":         {func(f *engine.HostToolFields) { f.Schema = json.RawMessage(`{"type":"array"}`) }, domain.CodeInvalid},
		"a schema that is null":      {func(f *engine.HostToolFields) { f.Schema = json.RawMessage(`null`) }, domain.CodeInvalid},
		"a secret that is too short": {func(f *engine.HostToolFields) { f.Secret = ptr("whsec_AAAA") }, domain.CodeInvalid},
		"a tag that there is not":    {func(f *engine.HostToolFields) { f.Tags = []string{"safe"} }, domain.CodeInvalid},
		"an approval of its own":     {func(f *engine.HostToolFields) { f.Approval = ptr("") }, domain.CodeInvalid},
	} {
		f := good()
		c.change(&f)
		_, _, err := w.engine.CreateHostTool(t.Context(), w.me, f)
		if domain.CodeOf(err) != c.code {
			t.Errorf("%s gives %v, want %s", name, err, c.code)
		}
	}
}
