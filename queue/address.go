package queue

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// address is where Redis is and how to get in. It makes clients for several uses,
// so that none of them can starve another of connections.
type address struct {
	base redis.UniversalOptions
}

// profile tunes a client for one use.
type profile struct {
	retries   int           // of one command; -1 for none
	read      time.Duration // longest wait for one reply
	dials     int           // tries for one connection
	pool      int           // connections; 0 for the library's default
	deadlines bool          // stop when the caller's context is over
}

var (
	// callerProfile serves people's requests: it gives up soon, since losing a ring
	// is cheaper than keeping a person waiting.
	callerProfile = profile{retries: 1, read: time.Second, dials: 1, pool: 32, deadlines: true}
	// serverProfile serves asynq's own loops, which must outlast a short fault: a
	// finished task that cannot be marked as done runs again.
	serverProfile = profile{retries: 3, read: 3 * time.Second, dials: 1}
	// waiterProfile serves one blocking wait for the bell.
	waiterProfile = profile{retries: -1, read: time.Second, dials: 1, pool: 1, deadlines: true}
	// monitorProfile serves the operators' pages.
	monitorProfile = profile{retries: 1, read: 3 * time.Second, dials: 1, pool: 4}
)

// client makes a client; it connects when first used.
func (a address) client(p profile) redis.UniversalClient {
	o := a.base
	o.MaxRetries, o.DialerRetries, o.PoolSize = p.retries, p.dials, p.pool
	o.ReadTimeout, o.WriteTimeout, o.DialTimeout = p.read, p.read, 2*time.Second
	o.ContextTimeoutEnabled = p.deadlines
	// A second pool with buffers of its own for pipelines is not worth its memory
	// for batches of a few short commands.
	o.PipelinePoolSize = -1
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewUniversalClient(&o)
}

// MakeRedisClient lets asynqmon make its own clients from the address.
func (a address) MakeRedisClient() any { return a.client(monitorProfile) }

// parseAddress reads the forms that Open lists. It takes the text apart itself
// because net/url refuses lists of hosts; no part of the text is in its errors,
// which could show a password.
func parseAddress(text string) (address, error) {
	var a address
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return a, errors.New("the Redis address has no scheme; write it as redis://host:6379")
	}
	kind, isTLS := strings.CutPrefix(scheme, "rediss")
	if !isTLS {
		kind, found = strings.CutPrefix(scheme, "redis")
	}
	if !found || (kind != "" && kind != "-cluster" && kind != "-sentinel") {
		return a, errors.New("the scheme of the Redis address is not known; use redis, rediss, redis-cluster or redis-sentinel")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if err := a.readUser(&authority); err != nil {
		return a, err
	}
	port := "6379"
	if kind == "-sentinel" {
		port = "26379"
	}
	var err error
	if a.base.Addrs, err = readHosts(authority, port); err != nil {
		return a, err
	}
	if kind == "" && len(a.base.Addrs) > 1 {
		return a, errors.New("the Redis address lists several hosts; use redis-cluster:// or redis-sentinel:// for that")
	}
	if err := a.readPath(kind, strings.Trim(path, "/")); err != nil {
		return a, err
	}
	if isTLS {
		a.base.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if kind == "" {
			a.base.TLSConfig.ServerName, _, _ = net.SplitHostPort(a.base.Addrs[0])
		}
	}
	err = a.readQuery(kind, query)
	return a, err
}

// readUser takes the user and the password off the front of authority.
func (a *address) readUser(authority *string) error {
	at := strings.LastIndex(*authority, "@")
	if at < 0 {
		return nil
	}
	user, password, hasPassword := strings.Cut((*authority)[:at], ":")
	*authority = (*authority)[at+1:]
	var err, failure error
	if a.base.Username, err = url.PathUnescape(user); err != nil {
		failure = err
	}
	if hasPassword {
		if a.base.Password, err = url.PathUnescape(password); err != nil {
			failure = err
		}
	}
	if failure != nil {
		return errors.New("the user or password in the Redis address has a broken % escape")
	}
	return nil
}

// readHosts splits a list of hosts and adds the port where it is missing.
func readHosts(list, port string) ([]string, error) {
	var hosts []string
	for host := range strings.SplitSeq(list, ",") {
		host = strings.TrimSpace(host)
		name, number, err := net.SplitHostPort(host)
		if err != nil {
			name, number = strings.Trim(host, "[]"), port
			if strings.Contains(name, ":") && !strings.HasPrefix(host, "[") {
				return nil, errors.New("a host in the Redis address is not host:port; an IPv6 address needs brackets")
			}
		}
		if n, err := strconv.ParseUint(number, 10, 16); err != nil || n == 0 {
			return nil, errors.New("a port in the Redis address is not a number from 1 to 65535")
		}
		if name == "" || strings.ContainsAny(name, " \t\r\n@/") {
			return nil, errors.New("a host in the Redis address is empty or not a name")
		}
		hosts = append(hosts, net.JoinHostPort(name, number))
	}
	return hosts, nil
}

// readPath reads the database and, for sentinels, the name of the master before it.
func (a *address) readPath(kind, path string) error {
	number := path
	switch kind {
	case "-cluster":
		a.base.IsClusterMode = true
		if path != "" && path != "0" {
			return errors.New("a Redis cluster has only database 0; leave the path of the Redis address empty")
		}
		return nil
	case "-sentinel":
		a.base.MasterName, number, _ = strings.Cut(path, "/")
		if a.base.MasterName == "" {
			return errors.New("the Redis address names no master; write it as redis-sentinel://host1,host2/master")
		}
	}
	if number == "" {
		return nil
	}
	db, err := strconv.ParseUint(number, 10, 15)
	if err != nil {
		return errors.New("the database in the Redis address is not a number")
	}
	a.base.DB = int(db)
	return nil
}

// readQuery reads the few settings that an address may carry.
func (a *address) readQuery(kind, query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the query of the Redis address cannot be read")
	}
	for name := range values {
		value := values.Get(name)
		switch {
		case name == "skip_verify" && value == "true" && a.base.TLSConfig != nil:
			a.base.TLSConfig.InsecureSkipVerify = true
		case name == "skip_verify" && value == "false":
		case name == "sentinel_username" && kind == "-sentinel":
			a.base.SentinelUsername = value
		case name == "sentinel_password" && kind == "-sentinel":
			a.base.SentinelPassword = value
		default:
			return errors.New("the query of the Redis address has a setting that does not fit; known are skip_verify=true with TLS, and sentinel_username and sentinel_password with sentinels")
		}
	}
	return nil
}
