package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

// answerFrom reads an answer from a form. The button says the way: a decision and a
// scope, or deny-rule for a deny that keeps the Rule beside it.
func (s *server) answerFrom(gc *gin.Context, expected string) (engine.Answer, error) {
	form := gc.Request.PostForm
	decision, scope, _ := strings.Cut(form.Get("way"), "-")
	revision, err := strconv.ParseInt(expected, 10, 64)
	if err != nil {
		return engine.Answer{}, invalid("expected", "is missing; load the page again")
	}
	body := Answer{Expected: revision, Decision: decision, Scope: scope}
	if reason := form.Get("reason"); reason != "" {
		body.Reason = &reason
	}
	if scope == "rule" {
		body.Scope = domain.ScopeOnce
		rule := strings.TrimSpace(form.Get("rule"))
		body.Rule = &rule
	}
	if err := s.fits(body); err != nil {
		return engine.Answer{}, err
	}
	if decision == domain.DecisionAsk && strings.TrimSpace(form.Get("reason")) == "" {
		return engine.Answer{}, invalid("reason", "must hold the question")
	}
	return engine.Answer{Expected: body.Expected, Decision: body.Decision, Scope: body.Scope, Reason: body.Reason, Rule: body.Rule}, nil
}

// answerOne answers a Request. What came of it is shown as the Request itself says
// it: also when somebody else was faster.
func (s *server) answerOne(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	id, err := RequestPath{Request: gc.Param("request")}.id()
	if err != nil {
		return err
	}
	answer, err := s.answerFrom(gc, gc.Request.PostForm.Get("expected"))
	if err != nil {
		return err
	}
	_, err = s.Engine.AnswerRequest(ctx, p, id, answer)
	stale := domain.IsCode(err, domain.CodeConflict)
	if err != nil && !stale {
		return err
	}
	whole := gc.Request.PostForm.Get("whole") != ""
	if !fromScript(gc) {
		gc.Redirect(http.StatusSeeOther, at(gc, back(id, stale, whole)))
		return nil
	}
	detail, err := s.requestDetail(ctx, p, id, whole)
	if err != nil {
		return err
	}
	detail.Stale = stale
	return s.part(ctx, gc, p, answered(stale), detail.Part())
}

// answered is the status of a page that shows what came of an answer.
func answered(stale bool) int {
	if stale {
		return http.StatusConflict
	}
	return http.StatusOK
}

// part shows a part of a page after a form.
func (s *server) part(ctx context.Context, gc *gin.Context, p domain.Principal, status int, v web.View) error {
	shell, err := s.shell(ctx, p, "", false)
	if err != nil {
		return err
	}
	s.write(gc, status, v, shell)
	return nil
}

// answerMany answers each chosen Request by itself, and says what came of each.
func (s *server) answerMany(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	ids := gc.Request.PostForm["id"]
	if len(ids) == 0 || len(ids) > maxBulk {
		return invalid("id", "must stand there 1 to 50 times: select some Requests")
	}
	bulk := web.Bulk{Done: true}
	for _, id := range distinct(ids) {
		if !domain.ValidID(id, domain.PrefixRequest) {
			return notFound("Request")
		}
		answer, err := s.answerFrom(gc, gc.Request.PostForm.Get("expected-"+id))
		if err != nil {
			return err
		}
		if answer.Scope != domain.ScopeOnce || answer.Rule != nil {
			return invalid("way", "must be an answer for once when many are answered at the same time")
		}
		result, err := s.answerAmongMany(ctx, p, domain.RequestID(id), answer)
		if err != nil {
			return err
		}
		bulk.Results = append(bulk.Results, result)
	}
	if fromScript(gc) {
		return s.part(ctx, gc, p, http.StatusOK, bulk.Part())
	}
	list, err := s.requestList(ctx, gc, p, "")
	if err != nil {
		return err
	}
	return s.afterForm(ctx, gc, p, "requests", web.Requests{List: list, Bulk: &bulk, Picked: true}.View())
}

func (s *server) answerAmongMany(ctx context.Context, p domain.Principal, id domain.RequestID, answer engine.Answer) (web.BulkResult, error) {
	result := web.BulkResult{ID: string(id), Title: string(id)}
	r, failed := s.Engine.AnswerRequest(ctx, p, id, answer)
	if failed != nil {
		// What stops one answer must not hide what came of those before it.
		problem := problemOf(failed)
		if problem.Status >= http.StatusInternalServerError {
			_ = s.failure(ctx, failed) // logged; the page says that it failed
		}
		result.Text = problem.Detail
		now, err := s.Engine.Request(ctx, p, id)
		if err != nil {
			return result, nil //nolint:nilerr // its own answer says what is wrong with it
		}
		r = now
	}
	var c nameless
	c.request(r)
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return result, nil //nolint:nilerr // the answer counts all the same
	}
	result.Title = titleOf(r.Capability, n) + " · " + n.bot(r.Bot)
	if o := outcomeOf(r, p.Member.ID, n); o != nil {
		result.Good = failed == nil
		result.Text = o.Title
		if failed != nil {
			result.Text = "Your answer did not count: " + o.Title
		}
	}
	return result, nil
}
