package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// reminders gives those that came into a Chat.
func (c *client) reminders(chat string) []object {
	c.t.Helper()
	var came []object
	for _, item := range c.list("/v1/chats/" + chat + "/items?limit=200") {
		if item["kind"] == "reminder" {
			came = append(came, item)
		}
	}
	return came
}

// A reminder outlives the program that took it, and comes once however many programs
// look for it.
func TestAReminderComesOnceAfterARestart(t *testing.T) {
	t.Parallel() // it waits for seconds
	onBackends(t, func(t *testing.T, b backend) {
		cfg := b.settings(t.TempDir())
		c, _, stop := startServe(t, cfg)
		chat := c.newChat()
		due := time.Now().Add(2 * time.Second)
		turn := c.say(chat, fmt.Sprintf("/call openbot_remind {\"text\":\"water the plants\",\"at\":%d}\n"+
			"/call openbot_remind {\"text\":\"never\",\"afterMs\":2000}", due.UnixMilli()))
		set := c.awaitTurn(chat, turn, status("Completed"))
		second := calls(set)[1]["result"].(string)
		at := strings.Index(second, "ntc_")
		turn = c.say(chat, `/call openbot_cancel_reminder {"reminder":"`+second[at:at+len("ntc_")+32]+`"}`)
		if ended := c.awaitTurn(chat, turn, status("Completed")); calls(ended)[0]["status"] != "succeeded" {
			t.Fatalf("the call is %v", calls(ended)[0])
		}
		stop()

		c, _, _ = startServe(t, cfg)
		if b.database != "" {
			startServe(t, cfg) // with workers and a scheduler of its own
		}
		c.poll("the reminder comes", 30*time.Second, func() bool { return len(c.reminders(chat)) > 0 })
		turns := c.list("/v1/chats/" + chat + "/turns")
		c.awaitTurn(chat, turns[0]["id"].(string), status("Completed"))
		// What would repeat it has run by the time that another reminder has come.
		turn = c.say(chat, `/call openbot_remind {"text":"later","afterMs":3000}`)
		c.awaitTurn(chat, turn, status("Completed"))
		c.poll("a later reminder comes", 30*time.Second, func() bool { return len(c.reminders(chat)) > 1 })
		came := c.reminders(chat)
		if len(came) != 2 || came[0]["text"] != "[OpenBot] Reminder: water the plants" || came[0]["from"] != "openbot" ||
			came[0]["createdAt"].(float64) < float64(due.UnixMilli()) || came[1]["text"] != "[OpenBot] Reminder: later" {
			t.Errorf("the reminders that came are %v", came)
		}
		if sums := c.list("/v1/usage?group=chat"); len(sums) != 1 || sums[0]["chat"] != chat || sums[0]["steps"].(float64) < 7 {
			t.Errorf("the usage is %v", sums)
		}
	})
}
