package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"openbot/domain"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"redis://localhost":                                      "[localhost:6379] user= password= db=0 master= cluster=false tls=",
		"redis://localhost:7000/3":                               "[localhost:7000] user= password= db=3 master= cluster=false tls=",
		"redis://:p%40ss@localhost":                              "[localhost:6379] user= password=p@ss db=0 master= cluster=false tls=",
		"redis://me:a@b:c@localhost/":                            "[localhost:6379] user=me password=a@b:c db=0 master= cluster=false tls=",
		"rediss://me:x@redis.example:6380":                       "[redis.example:6380] user=me password=x db=0 master= cluster=false tls=redis.example",
		"rediss://redis.example?skip_verify=true":                "[redis.example:6379] user= password= db=0 master= cluster=false tls=redis.example unchecked",
		"redis://[::1]":                                          "[[::1]:6379] user= password= db=0 master= cluster=false tls=",
		"redis://[::1]:7000":                                     "[[::1]:7000] user= password= db=0 master= cluster=false tls=",
		"redis-cluster://a,b:7001":                               "[a:6379 b:7001] user= password= db=0 master= cluster=true tls=",
		"redis-cluster://:x@one":                                 "[one:6379] user= password=x db=0 master= cluster=true tls=",
		"rediss-cluster://a,b":                                   "[a:6379 b:6379] user= password= db=0 master= cluster=true tls=by host",
		"redis-sentinel://a,b:7000/main":                         "[a:26379 b:7000] user= password= db=0 master=main cluster=false tls=",
		"redis-sentinel://me:x@a/main/2?sentinel_password=y%26z": "[a:26379] user=me password=x db=2 master=main cluster=false tls= sentinel=y&z",
	} {
		a, err := parseAddress(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		o := a.base
		got := fmt.Sprintf("%v user=%s password=%s db=%d master=%s cluster=%v tls=", o.Addrs, o.Username, o.Password, o.DB, o.MasterName, o.IsClusterMode)
		if o.TLSConfig != nil {
			got += map[bool]string{true: "by host", false: o.TLSConfig.ServerName}[o.TLSConfig.ServerName == ""]
			if o.TLSConfig.InsecureSkipVerify {
				got += " unchecked"
			}
		}
		if o.SentinelPassword != "" {
			got += " sentinel=" + o.SentinelPassword
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestAddressesThatCannotBeUnderstood(t *testing.T) {
	const secret = "swordfish"
	for _, text := range []string{
		"localhost:6379", "http://" + secret + "@host", "redis-ring://host", "redis://", "redis://a,b", "redis://host:" + secret,
		"redis://host:0", "redis://host:70000", "redis://host/" + secret, "redis://host/-1", "redis://::1", "redis://" + secret + "%zz@host",
		"redis://me:" + secret + "%zz@host", "redis://host?password=" + secret, "redis://host?skip_verify=true", "rediss://host?skip_verify=maybe",
		"redis-cluster://a/3", "redis-sentinel://a", "redis-sentinel://a/", "redis-sentinel://a/main/x", "redis-cluster://a,,b", "redis://ho st",
		"redis://host?sentinel_password=" + secret, "redis://:" + secret + "@",
	} {
		q, err := Open(t.Context(), Options{RedisURL: text})
		if !domain.IsCode(err, domain.CodeInvalid) {
			t.Errorf("%s: %v", text, err)
			if q != nil {
				_ = q.Close()
			}
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error shows it: %v", text, err)
		}
	}
}

func TestEveryUrgencyHasAQueue(t *testing.T) {
	for _, u := range urgencies {
		if weights[u] < 1 || queueOf(u) != u || strings.ContainsAny(string(u), "{}") {
			t.Errorf("%s has no share of the workers", u)
		}
	}
	if len(weights) != len(urgencies) || !slices.IsSortedFunc(urgencies, func(a, b domain.Urgency) int { return weights[b] - weights[a] }) {
		t.Error("the queues and their weights do not match")
	}
	if queueOf("unheard of") != domain.UrgencyRest {
		t.Error("an unknown urgency has no queue")
	}
}
