package engine

import (
	"time"

	"openbot/domain"
)

// caution says what the tags of a call and the taint of its Chat come to. connection is
// that of the call, or nil.
func caution(s domain.Settings, c domain.Call, connection *domain.Connection, host *domain.HostTool, taint domain.Taint) domain.Caution {
	var hints domain.AppHints
	if connection != nil && c.Kind == domain.CallApp {
		if t, ok := connection.Tool(c.Tool); ok {
			hints = t.Hints
		}
	}
	return s.Caution(s.CallTags(c, hints, host), taint)
}

// explain puts into a Request what its decider needs to see of the tags, the taint and
// the resource of its call.
func explain(r *domain.Request, s domain.Settings, c domain.Call, why domain.Caution) {
	r.Tags, r.TagLine, r.Taint, r.TaintedTag = append([]string{}, why.Tags...), why.TagLine, why.Taint, why.TaintedTag
	if c.Kind == domain.CallApp || c.Kind == domain.CallHost {
		r.Resource = s.Resource(c.Capability.Target, c.Arguments)
	}
}

// answers is the taint that the answer of a call brings.
func answers(f *domain.CallFacts, at time.Time) domain.Taint {
	return f.Organization.Settings.Source(f.Call, f.HostTool, at.UnixMilli())
}
