package domain

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"
)

// What changed at a revision is noted, newest first, and never taken from the App.
func TestChangesOfAnApp(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tool := func(name, schema, about string) AppTool {
		return AppTool{Name: name, Schema: json.RawMessage(schema), Description: about}
	}
	look := func(digest string, tools ...AppTool) Looked {
		return Looked{At: at, Look: AppLook{Digest: digest, Tools: tools, Changes: []AppChange{{Revision: 99}}}}
	}
	c := DecideLook(Connection{Revision: 1}, look("a", tool("send", `{}`, "Sends."), tool("read", `{}`, "Reads."), tool("old", `{}`, "")))
	if len(c.Look.Changes) != 0 || c.Revision != 1 {
		t.Fatalf("the first look is a change: %+v", c)
	}
	c = DecideLook(c, look("b", tool("send", `{"type":"object"}`, "Sends."), tool("read", `{}`, "Reads all."), tool("new", `{}`, "")))
	want := []AppChange{{Revision: 2, AtMs: at.UnixMilli(), Added: []string{"new"}, Removed: []string{"old"}, Schema: []string{"send"}, Words: []string{"read"}}}
	if !reflect.DeepEqual(c.Look.Changes, want) {
		t.Errorf("the changes are %+v", c.Look.Changes)
	}
	c = DecideLook(c, look("b", c.Look.Tools...))
	c = DecideLook(c, Looked{At: at, Down: "gone"})
	if !reflect.DeepEqual(c.Look.Changes, want) || c.Revision != 2 {
		t.Errorf("nothing changed, and the changes are %+v", c.Look.Changes)
	}
	c.Edit(at)
	for i := range 30 {
		c = DecideLook(c, look(fmt.Sprint(i), c.Look.Tools...))
	}
	if len(c.Look.Changes) != maxAppChanges || c.Look.Changes[0].Revision != 33 || c.Look.Changes[19].Revision != 14 {
		t.Errorf("%d changes are kept, from %d to %d", len(c.Look.Changes), c.Look.Changes[0].Revision, c.Look.Changes[len(c.Look.Changes)-1].Revision)
	}
}
