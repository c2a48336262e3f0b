package domain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"openbot/domain"
)

func TestAnApprovalIsWhatAScriptMaySee(t *testing.T) {
	r := domain.Request{ID: "req_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d", Turn: "turn_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5e", Member: "mem_1", Bot: "bot_1",
		Capability: domain.Capability{Action: domain.ActionAppsCall, Target: "con_7/send_email"}, App: &domain.SavedCall{Connection: "con_7", Tool: "send_email"},
		Reason: "The password is hunter2", Arguments: json.RawMessage(`{"to":"ops@example.test","token":"hush"}`), Tags: []string{"external_send"},
		ReviewVerdict: &domain.ReviewVerdict{Verdict: "block", Note: "hush"}, Status: domain.RequestPending, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
	before := deepCopy(r)
	a := domain.NewApproval(r, plainly)
	untouched(t, before, r)
	if a.ID != "018f6b1c-2d3e-7a4b-8c9d-0e1f2a3b4c5d" || a.RunID != "018f6b1c-2d3e-7a4b-8c9d-0e1f2a3b4c5e" || a.ToolName != "send_email" || a.Verdict != "block" ||
		a.Decision != "" || a.Reason != "The password is [redacted]" || string(a.Input) != `{"to":"ops@example.test","token":"[redacted]"}` || a.Tags[0] != "external_send" ||
		!a.CreatedAt.Equal(r.CreatedAt) || !a.ExpiresAt.Equal(r.ExpiresAt) {
		t.Errorf("got %+v", a)
	}
	raw, err := json.Marshal(a)
	if err != nil || strings.Contains(string(raw), "hush") || strings.Contains(string(raw), "hunter2") {
		t.Errorf("a secret came through: %s, %v", raw, err)
	}
	for status, want := range map[domain.RequestStatus]string{domain.RequestPending: "", domain.RequestAllowed: "approved", domain.RequestDenied: "denied", domain.RequestCancelled: ""} {
		r.Status = status
		if got := domain.NewApproval(r, plainly).Decision; got != want {
			t.Errorf("%s shows the decision %q", status, got)
		}
	}
	r.Arguments = nil
	if got := domain.NewApproval(r, plainly).Input; string(got) != "{}" {
		t.Errorf("no arguments are %s", got)
	}
}

// A tool has the name that its owner gave it, never the one that a model is shown.
func TestToolNames(t *testing.T) {
	for action, want := range map[string]string{domain.ActionToolsCall: "target", domain.ActionBotsDelegate: "openbot_delegate", domain.ActionBotsSpawn: "openbot_spawn",
		domain.ActionBotsCreate: "openbot_create_bot", domain.ActionBotsPromote: "openbot_promote_bot", domain.ActionPlansRun: "openbot_plan",
		domain.ActionChannelsSend: "openbot_send", domain.ActionDelegationsContinue: "delegations.continue"} {
		if got := (domain.Request{Capability: domain.Capability{Action: action, Target: "target"}}).ToolName(); got != want {
			t.Errorf("%s is called %q", action, got)
		}
	}
	for _, action := range domain.Actions() {
		if (domain.Request{Capability: domain.Capability{Action: action, Target: "x"}, App: &domain.SavedCall{Tool: "y"}}).ToolName() == "" {
			t.Errorf("%s has no name", action)
		}
	}
}

func TestUUIDsOfIDs(t *testing.T) {
	const id, uuid = "req_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d", "018f6b1c-2d3e-7a4b-8c9d-0e1f2a3b4c5d"
	if domain.UUIDOf(id) != uuid || domain.UUIDOf("req_1") != "" || domain.UUIDOf("") != "" {
		t.Errorf("the UUIDs are %q, %q, %q", domain.UUIDOf(id), domain.UUIDOf("req_1"), domain.UUIDOf(""))
	}
	if got, ok := domain.IDOf(uuid, domain.PrefixRequest); !ok || got != id {
		t.Errorf("the ID is %q, %v", got, ok)
	}
	for _, bad := range []string{"", id, strings.ToUpper(uuid), "{" + uuid[1:len(uuid)-1] + "}", strings.ReplaceAll(uuid, "-", ""), uuid + "0", uuid[:35], "g" + uuid[1:],
		"-018f6b1c2d3e-7a4b-8c9d-0e1f2a3b4c5d", "018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d----", "urn:uuid:" + uuid, uuid[:8] + "_" + uuid[9:], "018f6b1c-2d3e-7a4b-8c9d-0e1f2a3b4c5\n"} {
		if got, ok := domain.IDOf(bad, domain.PrefixRequest); ok {
			t.Errorf("%q was taken for %s", bad, got)
		}
	}
}
