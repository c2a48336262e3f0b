package engine

import (
	"context"

	"openbot/domain"
)

// Origin is who caused a command and from where, for the audit log. It decides
// nothing: what somebody may do is checked against its Principal.
type Origin struct {
	Member  domain.MemberID
	Token   domain.TokenID
	Address string // where an HTTP caller stands; "" for commands on the machine
	// HTTPRequest is the ID of the HTTP request, for the log; "" for all others.
	HTTPRequest string
	Operator    bool // a command on the server's machine
}

type originKey struct{}

// WithOrigin makes the commands of this context name who caused them. The caller may
// fill the Origin in until the first command.
func WithOrigin(ctx context.Context, o *Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

func originFrom(ctx context.Context) Origin {
	if o, ok := ctx.Value(originKey{}).(*Origin); ok {
		return *o
	}
	return Origin{}
}

// actor is who acts in the commands of this context; the server itself where nobody
// asked for it.
func (o Origin) actor() domain.Actor {
	switch {
	case o.Member == "":
		return domain.Actor{Tag: domain.TagServer}
	case o.Operator:
		return domain.Actor{Tag: domain.TagOperator, User: o.Member}
	}
	return domain.Person(o.Member)
}

// sign puts an actor into an entry, with the token and the address if it is the one
// who called.
func (o Origin) sign(e *domain.AuditEntry, actor domain.Actor) {
	e.Actor = actor
	person := actor.Tag == domain.TagPerson || actor.Tag == domain.TagOperator
	if person && (o.Member == "" || o.Member == actor.User) {
		e.Token, e.Address = o.Token, o.Address
	}
}
