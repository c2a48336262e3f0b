package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"openbot/domain"
	"openbot/model"
)

func play(t testing.TB, script domain.Script) (domain.ModelReply, error) {
	t.Helper()
	return model.New(model.Options{}).Call(t.Context(), domain.ModelRequest{
		Model: "playbook", Purpose: domain.PurposeTurn, Script: script,
	})
}

// steps plays a script to its end as the engine does, and shows each step as
// "name arguments | name arguments"; the last is the final answer.
func steps(t testing.TB, inputs ...string) []string {
	t.Helper()
	var shown []string
	for done := 0; ; done++ {
		reply, err := play(t, domain.Script{Inputs: inputs, StepsDone: done})
		var failure *domain.ModelError
		if errors.As(err, &failure) {
			return append(shown, fmt.Sprintf("error(%v): %s", failure.Temporary, failure.Message))
		}
		if err != nil {
			t.Fatalf("not a ModelError: %v", err)
		}
		if len(reply.Calls) == 0 {
			return append(shown, reply.Text)
		}
		if reply.Text != "" {
			t.Errorf("a step with calls says %q", reply.Text)
		}
		var calls []string
		for _, call := range reply.Calls {
			calls = append(calls, call.Name+" "+string(call.Arguments))
		}
		shown = append(shown, strings.Join(calls, " | "))
	}
}

func TestPlaybookSteps(t *testing.T) {
	cases := []struct {
		name   string
		inputs []string
		want   []string
	}{
		{"plain text is said back", []string{"hello there"}, []string{"You said: hello there"}},
		{"texts are joined", []string{"hello", "there"}, []string{"You said: hello\nthere"}},
		{"no input", nil, []string{"You said: "}},
		{"one call", []string{`/call mail__send {"to":"a@b.c"}`}, []string{`mail__send {"to":"a@b.c"}`, "Done. No call was made."}},
		{"adjacent calls run together", []string{"/call a {}\n/call b {\"x\":1}"}, []string{`a {} | b {"x":1}`, "Done. No call was made."}},
		{"then makes a new step", []string{"/call a {}\n/then\n/call b {}\n/say ok"}, []string{"a {}", "b {}", "ok"}},
		{"then without calls makes no empty step", []string{"/then\n/then\n/call a {}\n/then\n/then\n/say ok"}, []string{"a {}", "ok"}},
		{"plain lines between calls do not part them", []string{"/call a {}\nand also\n\n/call b {}\n/say ok"}, []string{"a {} | b {}", "ok"}},
		{"say between calls parts them", []string{"/call a {}\n/say early\n/call b {}"}, []string{"a {}", "b {}", "early"}},
		{"sleep between calls parts them", []string{"/call a {}\n/sleep 0\n/call b {}\n/say ok"}, []string{"a {}", "b {}", "ok"}},
		{"say alone", []string{"/say hi there"}, []string{"hi there"}},
		{"the last say wins", []string{"/say one\n/say two"}, []string{"two"}},
		{"the last say wins across inputs", []string{"/say one", "/say two"}, []string{"two"}},
		{"a later input adds a step", []string{"/call a {}", "/call b {}\n/say ok"}, []string{"a {}", "b {}", "ok"}},
		{"a later input without directives changes nothing", []string{"/call a {}\n/say ok", "hurry"}, []string{"a {}", "ok"}},
		{"fail alone", []string{"/fail no more money"}, []string{"error(false): no more money"}},
		{"fail without a text", []string{"/fail"}, []string{"error(false): the script told the playbook to fail"}},
		{"fail before a call belongs to its step", []string{"/fail now\n/call a {}"}, []string{"error(false): now"}},
		{"fail after a call belongs to the answer", []string{"/call a {}\n/fail late"}, []string{"a {}", "error(false): late"}},
		{"fail between calls belongs to the second", []string{"/call a {}\n/fail mid\n/call b {}"}, []string{"a {}", "error(false): mid"}},
		{"fail wins over say", []string{"/call a {}\n/say ok\n/fail late"}, []string{"a {}", "error(false): late"}},
		{"missing JSON is an empty object", []string{"/call a\n/say ok"}, []string{"a {}", "ok"}},
		{"malformed JSON goes out unchanged", []string{"/call a {\"x\": \n/say ok"}, []string{`a {"x":`, "ok"}},
		{"JSON with blanks inside stays", []string{"/call  a \t {\"x\":  \"/then\"}  \n/say ok"}, []string{`a {"x":  "/then"}`, "ok"}},
		{"a name may be anything", []string{"/call drop;table/☂ {}\n/say ok"}, []string{"drop;table/☂ {}", "ok"}},
		{"lines of Windows", []string{"/call a {}\r\n/then\r\n/call b\r\n/say ok\r\n"}, []string{"a {}", "b {}", "ok"}},
		{"unknown directives are text", []string{"/foo bar"}, []string{"You said: /foo bar"}},
		{"a longer word is another word", []string{"/calla {}\n/sayings"}, []string{"You said: /calla {}\n/sayings"}},
		{"a directive starts its line", []string{" /say hi"}, []string{"You said:  /say hi"}},
		{"capitals are another word", []string{"/SAY hi"}, []string{"You said: /SAY hi"}},
		{"a call without a name is text", []string{"/call"}, []string{"You said: /call"}},
		{"a sleep without a number is text", []string{"/sleep long"}, []string{"You said: /sleep long"}},
		{"a negative sleep is text", []string{"/sleep -5"}, []string{"You said: /sleep -5"}},
		{"decide is no directive of a Turn", []string{"/decide allow"}, []string{"You said: /decide allow"}},
		{"text beside directives is not said back", []string{"Please do this:\n/say done"}, []string{"done"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := steps(t, c.inputs...); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestPlaybookListsOutcomes(t *testing.T) {
	script := domain.Script{
		Inputs: []string{"/call a {}\n/call b {}"}, StepsDone: 1,
		Outcomes: []domain.ToolOutcome{
			{Name: "a", Text: "sent\n"},
			{Name: "b", Text: strings.Repeat("ü", 501)},
			{Name: "c", Text: "/say not a directive"},
		},
	}
	reply, err := play(t, script)
	if err != nil {
		t.Fatal(err)
	}
	want := "a: sent\nb: " + strings.Repeat("ü", 500) + "…\nc: /say not a directive"
	if reply.Text != want {
		t.Errorf("got  %q\nwant %q", reply.Text, want)
	}
}

func TestPlaybookIsDeterministicAndNamesCallsOnce(t *testing.T) {
	script := domain.Script{Inputs: []string{"/call a {}\n/call a {}\n/then\n/call a {}"}}
	seen := map[string]bool{}
	for done := range 2 {
		script.StepsDone = done
		first, _ := play(t, script)
		again, _ := play(t, script)
		if !reflect.DeepEqual(first, again) {
			t.Errorf("step %d: %+v, then %+v", done, first, again)
		}
		for _, call := range first.Calls {
			if seen[call.ID] {
				t.Errorf("ID %s twice", call.ID)
			}
			seen[call.ID] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d calls, want 3", len(seen))
	}
}

func TestPlaybookCountsWords(t *testing.T) {
	request := domain.ModelRequest{
		Model: "playbook", Purpose: domain.PurposeTurn, System: "never counted at all",
		Messages: []domain.ModelMessage{
			{Role: domain.RoleUser, Text: "one two"},
			{Role: domain.RoleAssistant, Text: "three", Calls: []domain.ModelCall{{Name: "four", Arguments: json.RawMessage(`{"five": 6}`)}}},
			{Role: domain.RoleTool, Text: "seven eight  nine"},
		},
		Tools:  []domain.ModelTool{{Name: "x", Description: "not counted"}},
		Script: domain.Script{Inputs: []string{`/call one {"two": 3}`}},
	}
	models := model.New(model.Options{})
	reply, err := models.Call(t.Context(), request)
	if want := (domain.ModelUsage{InputTokens: 9, OutputTokens: 3}); err != nil || reply.Usage != want {
		t.Errorf("calls: %+v %v, want %+v", reply.Usage, err, want)
	}
	request.Script = domain.Script{Inputs: []string{"/say four words are said"}}
	reply, err = models.Call(t.Context(), request)
	if want := (domain.ModelUsage{InputTokens: 9, OutputTokens: 4}); err != nil || reply.Usage != want {
		t.Errorf("text: %+v %v, want %+v", reply.Usage, err, want)
	}
}

func TestPlaybookSleeps(t *testing.T) {
	cases := []struct {
		name  string
		input string
		done  int
		want  time.Duration
	}{
		{"before the answer", "/sleep 250", 0, 250 * time.Millisecond},
		{"before the call that follows", "/sleep 40\n/call a {}", 0, 40 * time.Millisecond},
		{"not before the answer after that call", "/sleep 40\n/call a {}", 1, 0},
		{"after the last call it is the answer's", "/call a {}\n/sleep 70", 1, 70 * time.Millisecond},
		{"after a call it is not that call's", "/call a {}\n/sleep 70", 0, 0},
		{"sleeps add up", "/sleep 20\n/sleep 30", 0, 50 * time.Millisecond},
		{"ten minutes at most", "/sleep 600000\n/sleep 600000", 0, 10 * time.Minute},
		{"ten minutes at most for a number of any length", "/sleep 99999999999999999999999", 0, 10 * time.Minute},
		{"a failure sleeps as well", "/sleep 15\n/fail x", 0, 15 * time.Millisecond},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, _ = play(t, domain.Script{Inputs: []string{c.input}, StepsDone: c.done})
				if got := time.Since(start); got != c.want {
					t.Errorf("took %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestPlaybookSleepEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := model.New(model.Options{}).Call(ctx, domain.ModelRequest{
			Model: "playbook", Purpose: domain.PurposeTurn, Script: domain.Script{Inputs: []string{"/sleep 60000\n/say late"}},
		})
		var failure *domain.ModelError
		if !errors.As(err, &failure) || !failure.Temporary || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if time.Since(start) != time.Second {
			t.Errorf("took %v", time.Since(start))
		}
	})
}

func TestPlaybookReview(t *testing.T) {
	cases := []struct {
		name         string
		instructions string
		done         int
		want         string // arguments of openbot_decide, "" for none
	}{
		{"allow", "Be kind.\n/decide allow", 0, `{"decision":"allow"}`},
		{"deny with a scope", "/decide deny once", 0, `{"decision":"deny","scope":"once"}`},
		{"scope and reason", "/decide allow lifetime it is <safe> & sound\nbye", 0, `{"decision":"allow","scope":"lifetime","reason":"it is <safe> & sound"}`},
		{"reason without a scope", "/decide deny too dear", 0, `{"decision":"deny","reason":"too dear"}`},
		{"the older word for chat", "/decide allow session", 0, `{"decision":"allow","scope":"chat"}`},
		{"the last line counts", "/decide allow\n/decide deny chat", 0, `{"decision":"deny","scope":"chat"}`},
		{"none", "/decide none", 0, ""},
		{"none after allow", "/decide allow\n/decide none", 0, ""},
		{"absent", "Allow everything.", 0, ""},
		{"another word", "/decide perhaps", 0, ""},
		{"no word", "/decide", 0, ""},
		{"capitals are no decision", "/decide ALLOW", 0, ""},
		{"not at the start of the line", "please /decide allow", 0, ""},
		{"only once", "/decide allow", 1, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			reply, err := model.New(model.Options{}).Call(t.Context(), domain.ModelRequest{
				Model: "playbook", Purpose: domain.PurposeReview,
				Script: domain.Script{
					Instructions: c.instructions, StepsDone: c.done,
					Inputs: []string{"/call openbot_decide {\"decision\":\"allow\"}\n/decide allow\n/fail x"},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(reply.Calls) != 0 || reply.Text == "" {
					t.Errorf("got %+v, want a text alone", reply)
				}
				return
			}
			if len(reply.Calls) != 1 || reply.Calls[0].Name != "openbot_decide" || string(reply.Calls[0].Arguments) != c.want {
				t.Errorf("got %+v, want openbot_decide %s", reply, c.want)
			}
		})
	}
}

func TestPlaybookAsReviewer(t *testing.T) {
	human := domain.TagLine{Tag: "spend", Effect: domain.TagEffectHuman}
	for _, c := range []struct {
		name string
		read *domain.ReviewerCase
		want string
	}{
		{"nothing to read", nil, domain.VerdictUnclear},
		{"no tags", &domain.ReviewerCase{}, domain.VerdictUnclear},
		{"a tag for people", &domain.ReviewerCase{Tags: []string{"spend"}, TagLine: human}, domain.VerdictBlock},
		{"a tag for people beside read", &domain.ReviewerCase{Tags: []string{"read", "spend"}, TagLine: human}, domain.VerdictBlock},
		{"read", &domain.ReviewerCase{Tags: []string{"read"}, TagLine: domain.TagLine{Tag: "read", Effect: domain.TagEffectAsk}}, domain.VerdictAllow},
		{"write", &domain.ReviewerCase{Tags: []string{"write", "network"}, TagLine: domain.TagLine{Tag: "write", Effect: domain.TagEffectAsk}}, domain.VerdictUnclear},
		{"words that ask for it", &domain.ReviewerCase{Tags: []string{"write"}, Reason: "/say allow"}, domain.VerdictUnclear},
	} {
		reply, err := model.New(model.Options{}).Call(t.Context(), domain.ModelRequest{
			Model: "playbook", Purpose: domain.PurposeReviewer, Script: domain.Script{Inputs: []string{"/fail no"}, Reviewer: c.read},
		})
		if err != nil || len(reply.Calls) != 0 {
			t.Fatalf("%s: %v %+v", c.name, err, reply)
		}
		if got := domain.ReadReviewVerdict(reply.Text); got.Verdict != c.want || got.Note == "" {
			t.Errorf("%s: the verdict is %+v, want %s", c.name, got, c.want)
		}
	}
}

func TestPlaybookAlwaysAnswers(t *testing.T) {
	line := rapid.OneOf(
		rapid.SampledFrom([]string{"/call", "/call a", "/call a {}", `/call b {"x":`, "/then", "/say", "/say x", "/fail", "/fail y",
			"/sleep 0", "/sleep", "/sleep x", "/foo", "text", "", "/", "//call a"}),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		var inputs []string
		calls := 0
		for _, lines := range rapid.SliceOfN(rapid.SliceOfN(line, 0, 8), 0, 4).Draw(t, "inputs") {
			input := strings.Join(lines, "\n")
			calls += strings.Count(input, "/call")
			inputs = append(inputs, input)
		}
		models := model.New(model.Options{})
		seen := map[string]bool{}
		answered := false
		for done := range calls + 3 {
			reply, err := models.Call(t.Context(), domain.ModelRequest{
				Model: "playbook", Purpose: domain.PurposeTurn, Script: domain.Script{Inputs: inputs, StepsDone: done},
			})
			var failure *domain.ModelError
			if err != nil && (!errors.As(err, &failure) || failure.Temporary) {
				t.Fatalf("step %d: %v", done, err)
			}
			for _, call := range reply.Calls {
				if answered && err == nil {
					t.Fatalf("step %d calls %s after the answer", done, call.Name)
				}
				if call.Name == "" || len(call.Arguments) == 0 || seen[call.ID] {
					t.Fatalf("step %d: call %+v, IDs %v", done, call, seen)
				}
				seen[call.ID] = true
			}
			answered = answered || (err == nil && len(reply.Calls) == 0)
			if done >= calls && len(reply.Calls) != 0 {
				t.Fatalf("step %d of %d calls is not the end", done, calls)
			}
		}
	})
}
