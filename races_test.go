package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"openbot/apps/appstest"
)

// Many clients at once would use up the ports of the machine if each call took a new
// connection.
func init() { http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 128 }

// racers is how many rounds of a race run at the same time.
const racers = 32

// together runs n rounds, as many at a time as there are racers; lane is that of the
// racer, so that a round has what no other round at the same time has.
func together(n int, round func(lane, i int)) {
	places := make(chan int, racers)
	for lane := range racers {
		places <- lane
	}
	var all sync.WaitGroup
	for i := range n {
		lane := <-places
		all.Go(func() {
			defer func() { places <- lane }()
			round(lane, i)
		})
	}
	all.Wait()
}

// atOnce runs everything at the same moment.
func atOnce(all ...func()) {
	gate := make(chan struct{})
	var running sync.WaitGroup
	for _, one := range all {
		running.Go(func() {
			<-gate
			one()
		})
	}
	close(gate)
	running.Wait()
}

// sentTo counts the calls of an App by their exact arguments.
func sentTo(app *appstest.App) map[string]int {
	sent := map[string]int{}
	for _, r := range app.Receipts() {
		sent[string(r.Arguments)]++
	}
	return sent
}

// TestAnswersRace lets answers race what else can happen to their Requests in the
// same millisecond: new attempts that the answer's Grant decides, an interrupt, the
// end of their time. None hangs, none runs twice, and none runs undecided. The
// variable OPENBOT_TEST_RACES gives another number of rounds.
func TestAnswersRace(t *testing.T) {
	n := 80
	if set := os.Getenv("OPENBOT_TEST_RACES"); set != "" {
		var err error
		n, err = strconv.Atoi(set)
		must(t, err)
	}
	b := newBackend(t)
	app := appstest.New(t)
	for lane := range racers {
		app.Tool(fmt.Sprintf("send_%d", lane), "Sends.", "", nil)
	}
	c, _, _ := startServe(t, b.settings(t.TempDir()))
	c.connect("desk", app.URL)
	t.Run("Grant", func(t *testing.T) { raceGrants(t, c, app, n/2) })
	t.Run("interrupt", func(t *testing.T) { raceInterrupts(t, c, app, n/4) })
	c.call("PATCH", "/v1/settings", object{"requestTimeoutMs": 1000}, 200)
	t.Run("expiry", func(t *testing.T) { raceExpiries(t, c, app, n-n/2-n/4) })
	if left := c.list("/v1/requests?status=pending"); len(left) != 0 {
		t.Errorf("%d Requests still wait: %v", len(left), left)
	}
}

// attempt starts a Turn that tries a tool once for each text.
func attempt(c *client, chat, tool string, texts ...string) string {
	script := ""
	for _, text := range texts {
		script += fmt.Sprintf("/call desk__%s {\"to\":%q}\n", tool, text)
	}
	return c.say(chat, script)
}

// raceGrants: an answer that keeps a Grant races new attempts of the same capability
// in other Chats. A lifetime Grant decides them, by their check or by settling; one
// for a Chat decides what else waits in that Chat, and nothing in another.
func raceGrants(t *testing.T, c *client, app *appstest.App, n int) {
	var settled, checked sync.Map
	together(n, func(lane, i int) {
		tool, lifetime := fmt.Sprintf("send_%d", lane), i%2 == 0
		first, second, third := c.newChat(), c.newChat(), c.newChat()
		texts := []string{fmt.Sprintf("grant-%d-a", i)}
		if !lifetime {
			texts = append(texts, fmt.Sprintf("grant-%d-d", i))
		}
		turn := attempt(c, first, tool, texts...)
		request := requestOf(c.awaitTurn(first, turn, status("Waiting")))
		scope := map[bool]string{true: "lifetime", false: "chat"}[lifetime]
		others := make([]string, 2)
		atOnce(
			func() { others[0] = attempt(c, second, tool, fmt.Sprintf("grant-%d-b", i)) },
			func() {
				c.call("POST", "/v1/requests/"+request, object{"expected": 0, "decision": "allow", "scope": scope}, 200)
			},
			func() { others[1] = attempt(c, third, tool, fmt.Sprintf("grant-%d-c", i)) },
		)
		ended := []object{c.awaitTurn(first, turn, status("Completed"))}
		for k, chat := range []string{second, third} {
			if !lifetime {
				waiting := c.awaitTurn(chat, others[k], status("Waiting"))
				c.allow(requestOf(waiting))
			}
			ended = append(ended, c.awaitTurn(chat, others[k], status("Completed")))
		}
		for k, turn := range ended {
			for _, call := range calls(turn) {
				by, _ := call["decidedBy"].(object)
				if call["status"] != "succeeded" || by == nil {
					t.Errorf("round %d: a call is %v", i, call)
					continue
				}
				if lifetime && k > 0 {
					if by["by"].(object)["_tag"] != "Grant" {
						t.Errorf("round %d: the call was decided by %v, want the Grant", i, by)
					}
					if by["step"] == "grant" {
						checked.Store(call["id"], true)
					} else {
						settled.Store(call["id"], true)
					}
				}
				if !lifetime && k > 0 && by["by"].(object)["_tag"] != "Person" {
					t.Errorf("round %d: a Grant for another Chat decided: %v", i, by)
				}
			}
		}
		// The next round of this lane begins without the Grant.
		for _, g := range c.grantsOf(tool) {
			c.call("DELETE", "/v1/grants/"+g, nil, 204)
		}
	})
	sent := sentTo(app)
	for i := range n {
		letters := []string{"a", "b", "c", "d"}[:4-(i+1)%2]
		for _, letter := range letters {
			if got := sent[fmt.Sprintf(`{"to":"grant-%d-%s"}`, i, letter)]; got != 1 {
				t.Errorf("call %s of round %d went out %d times, want 1", letter, i, got)
			}
		}
	}
	t.Logf("%d rounds; the Grant decided %d attempts by their check and %d that waited already", n, size(&checked), size(&settled))
}

func size(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// grantsOf gives the Grants for one tool that stand.
func (c *client) grantsOf(tool string) []string {
	c.t.Helper()
	var found []string
	for _, g := range c.list("/v1/grants?limit=200") {
		target := g["capability"].(object)["target"].(string)
		if len(target) > len(tool) && target[len(target)-len(tool)-1:] == "/"+tool {
			found = append(found, g["id"].(string))
		}
	}
	return found
}

// raceInterrupts: an answer races an interrupt of its Turn. A Turn ends either way; a
// call whose answer lost never went out.
func raceInterrupts(t *testing.T, c *client, app *appstest.App, n int) {
	answers := make([]int, n)
	together(n, func(lane, i int) {
		chat := c.newChat()
		turn := attempt(c, chat, fmt.Sprintf("send_%d", lane), fmt.Sprintf("interrupt-%d", i))
		request := requestOf(c.awaitTurn(chat, turn, status("Waiting")))
		atOnce(
			func() { answers[i] = answerOnce(c, request) },
			func() {
				if got, raw, err := c.try("POST", "/v1/chats/"+chat+"/interrupt", object{"delegations": false}); err != nil || got != 200 {
					t.Errorf("round %d: the interrupt gave %d %v %s", i, got, err, raw)
				}
			},
		)
		ended := c.awaitTurn(chat, turn, func(turn object) bool {
			if turn["status"] != "Completed" && turn["status"] != "Interrupted" {
				return false
			}
			call := onlyCall(turn)["status"]
			return call != "sending" && call != "allowed"
		})
		call := onlyCall(ended)
		if answers[i] == 409 && call["status"] != "cancelled" {
			t.Errorf("round %d: the answer was refused and the call is %v", i, call)
		}
	})
	sent, won, out := sentTo(app), 0, 0
	for i, answer := range answers {
		got := sent[fmt.Sprintf(`{"to":"interrupt-%d"}`, i)]
		if got > 1 || answer != 200 && got != 0 {
			t.Errorf("round %d: an answer that gave %d let the call out %d times", i, answer, got)
		}
		if answer == 200 {
			won++
		}
		out += got
	}
	t.Logf("%d rounds; %d answers came before the interrupt, %d calls went out", n, won, out)
}

// answerOnce allows a Request and gives the status of the answer.
func answerOnce(c *client, request string) int {
	got, raw, err := c.try("POST", "/v1/requests/"+request, object{"expected": 0, "decision": "allow"})
	if err != nil || got != 200 && got != 409 {
		c.t.Errorf("an answer gave %d %v %s", got, err, raw)
	}
	return got
}

// raceExpiries: an answer comes in the millisecond in which the time of its Request is
// up.
func raceExpiries(t *testing.T, c *client, app *appstest.App, n int) {
	answers := make([]int, n)
	together(n, func(lane, i int) {
		chat := c.newChat()
		turn := attempt(c, chat, fmt.Sprintf("send_%d", lane), fmt.Sprintf("expiry-%d", i))
		var request string
		c.awaitTurn(chat, turn, func(turn object) bool {
			if turn["status"] == "Waiting" {
				request = requestOf(turn)
			}
			return request != "" || turn["status"] == "Completed"
		})
		if request != "" {
			r := c.call("GET", "/v1/requests/"+request, nil, 200)
			// The answer takes a few milliseconds to its commit; the rounds spread over those.
			early := time.Duration(i%24) * time.Millisecond
			<-time.After(time.Until(time.UnixMilli(int64(r["expiresAt"].(float64)))) - early)
			answers[i] = answerOnce(c, request)
		}
		call := onlyCall(c.awaitTurn(chat, turn, status("Completed")))
		want := map[int]string{200: "succeeded", 409: "denied", 0: "denied"}[answers[i]]
		if call["status"] != want {
			t.Errorf("round %d: the answer gave %d and the call is %v", i, answers[i], call)
		}
	})
	sent, won := sentTo(app), 0
	for i, answer := range answers {
		want := 0
		if answer == 200 {
			want = 1
			won++
		}
		if got := sent[fmt.Sprintf(`{"to":"expiry-%d"}`, i)]; got != want {
			t.Errorf("round %d: an answer that gave %d let the call out %d times", i, answer, got)
		}
	}
	t.Logf("%d rounds; %d answers came in time", n, won)
}
