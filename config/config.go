// Package config owns the settings of the server: one struct, its defaults, the
// file and the environment that change them, and the rules they must meet.
//
// It reports every fault at once, in one line, and never puts a secret into an
// error, a log line or a print-out. It never opens a connection and knows nothing
// of the other packages; app.go hands each of them what it needs.
package config

import "runtime"

// Config is everything that can be set from outside. The zero value is not usable;
// start from Default or Load.
type Config struct {
	// Listen is the address of the API and the inbox, as host:port. Port 0 takes any
	// free port.
	Listen string `yaml:"listen"`
	// PublicURL is where people reach the inbox, with the path under which a proxy shows it,
	// if any. Empty means no path, and that no notifications are sent: they hold a link.
	PublicURL string `yaml:"publicUrl"`
	// TrustedProxies are the addresses or networks of the proxies before the server,
	// separated by commas. What they say of a caller's address is believed. See Proxies.
	TrustedProxies string `yaml:"trustedProxies"`
	// Data is the folder of the SQLite file and of the keys that the server makes.
	Data string `yaml:"data"`
	// Token is the token of the first admin. Empty means that one is made and printed.
	Token Secret `yaml:"token"`
	// DatabaseURL names a PostgreSQL database. Empty means SQLite in Data.
	DatabaseURL Secret `yaml:"databaseUrl"`
	// RedisURL names a Redis, cluster or sentinel. Empty means one inside the process.
	RedisURL Secret `yaml:"redisUrl"`
	// Models says which models are used and how their providers are reached.
	Models Models `yaml:"models"`
	// Apps says what Apps may do to this machine and its network.
	Apps Apps `yaml:"apps"`
	// Mail says how e-mail goes out.
	Mail Mail `yaml:"mail"`
	// WorkerLimit is how many tasks one worker process runs at a time; 0 means by
	// cores. Workers gives the number in force.
	WorkerLimit int `yaml:"workers"`
	// SecretKey is the secret from which the keys at rest are derived. Empty means the
	// one in Data; see the function SecretKey.
	SecretKey Secret `yaml:"secretKey"`
	// TracesEndpoint is the OTLP address that traces go to. Empty means none.
	TracesEndpoint string `yaml:"tracesEndpoint"`
}

// Models holds the models as "provider:model", or "playbook", and their providers.
type Models struct {
	// Default is the model of Bots that name none.
	Default string `yaml:"default"`
	// Judge is the model that reads Rules.
	Judge string `yaml:"judge"`
	// Reviewer is the model that leaves verdicts for people.
	Reviewer string `yaml:"reviewer"`
	// OpenAI is OpenAI, or whatever speaks like it at another address.
	OpenAI Provider `yaml:"openai"`
	// Anthropic is Anthropic, or whatever speaks like it at another address.
	Anthropic Provider `yaml:"anthropic"`
}

// Provider is how one provider of models is reached.
type Provider struct {
	// APIKey is sent with every call; empty sends none.
	APIKey Secret `yaml:"apiKey"`
	// BaseURL replaces the provider's own address; empty keeps it.
	BaseURL string `yaml:"baseUrl"`
}

// Apps says what Apps may do to this machine and its network.
type Apps struct {
	// AllowPrivateNetworks lets Apps stand on loopback, link-local and private
	// addresses.
	AllowPrivateNetworks bool `yaml:"allowPrivateNetworks"`
	// AllowCommands lets admins make Connections that start a command on this machine.
	AllowCommands bool `yaml:"allowCommands"`
}

// Default gives the settings that are in force when nothing is set.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:8080",
		Data:   "./data",
		Models: Models{Default: "playbook", Judge: "playbook", Reviewer: "playbook"},
	}
}

// Workers gives how many tasks one worker process runs at a time: WorkerLimit, or 32
// for each core when that is 0. Tasks wait for models and Apps far more than they
// compute, so there are many more of them than cores.
func (c Config) Workers() int {
	if c.WorkerLimit > 0 {
		return c.WorkerLimit
	}
	return 32 * runtime.NumCPU()
}
