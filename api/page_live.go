package api

import (
	"context"
	"strconv"

	"github.com/gin-gonic/gin"

	"openbot/domain"
)

// live is the stream of events that keeps pages up to date: that of /v1/events, for
// whoever has a session.
func (s *server) live(gc *gin.Context) {
	ctx := gc.Request.Context()
	p, err := s.fromBrowser(ctx, gc)
	if err == nil {
		infoFrom(ctx).principal = p
		err = mayCall(p, domain.RoleRead)
	}
	var after int64
	if err == nil {
		after, err = strconv.ParseInt(gc.DefaultQuery("afterSequence", "-1"), 10, 64)
		if err != nil {
			err = invalid("afterSequence", "must be a whole number")
		}
	}
	if err == nil {
		after, err = resumeAfter(after, gc.GetHeader("Last-Event-ID"))
	}
	if err != nil {
		s.refuse(gc, s.failure(ctx, err))
		return
	}
	if i := infoFrom(ctx); i.route == nil {
		i.route = &route{path: "/live", stream: true}
	}
	s.streamTo(ctx, gc, func(ev domain.Event) int64 { return ev.Position },
		func(ctx context.Context, send func([]domain.Event) error, quiet func() error) error {
			return s.Engine.ObserveMember(ctx, p, after, send, quiet)
		})
}
