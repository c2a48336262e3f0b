// Command conformance puts the App client under the MCP conformance suite, which
// starts it once for each scenario with the address of its own server as the last
// argument and the scenario's name in MCP_CONFORMANCE_SCENARIO. It owns nothing and
// is no part of the server.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"openbot/apps"
	"openbot/domain"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance URL (started by the MCP conformance suite)")
		os.Exit(2)
	}
	if err := run(os.Args[len(os.Args)-1], os.Getenv("MCP_CONFORMANCE_SCENARIO")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// toolCalls is what some scenarios ask for in MCP_CONFORMANCE_CONTEXT.
type toolCalls struct {
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

func run(url, scenario string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	a := apps.New(apps.Options{AllowPrivate: true})
	defer func() { _ = a.Close() }()
	c := client{apps: a, endpoint: domain.AppEndpoint{Connection: "con_1", Organization: "org_1", Revision: 1,
		Transport: domain.TransportHTTP, URL: url}}
	look, err := a.Look(ctx, c.endpoint)
	if err != nil && scenario != "sep-2322-client-request-state" {
		return fmt.Errorf("looking: %w", err)
	}
	switch scenario {
	case "initialize", "request-metadata", "json-schema-ref-no-deref":
		return nil
	case "tools_call":
		return c.call(ctx, "add_numbers", json.RawMessage(`{"a":5,"b":3}`))
	case "sep-2322-client-request-state":
		// A question back is an answer that cannot be used; the call is not sent again.
		for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
			_ = c.call(ctx, name, nil)
		}
		return nil
	case "json-schema-2020-12-preservation":
		for _, tool := range look.Tools {
			if tool.Name == "json_schema_2020_12_tool" {
				return c.call(ctx, "json_schema_echo", json.RawMessage(`{"schema":`+string(tool.Schema)+`}`))
			}
		}
		return errors.New("the tool whose schema is asked for is not offered")
	case "http-custom-headers":
		var asked toolCalls
		if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &asked); err != nil {
			return fmt.Errorf("reading the scenario's context: %w", err)
		}
		for _, one := range asked.ToolCalls {
			_ = c.call(ctx, one.Name, one.Arguments)
		}
		return nil
	}
	return c.useAll(ctx, look)
}

type client struct {
	apps     *apps.Apps
	endpoint domain.AppEndpoint
}

func (c client) call(ctx context.Context, tool string, arguments json.RawMessage) error {
	_, err := c.apps.Call(ctx, c.endpoint, domain.AppCall{Tool: tool, Arguments: arguments}, ready)
	return err
}

// useAll calls every tool and reads a resource and a prompt. Single failures are the
// suite's to judge.
func (c client) useAll(ctx context.Context, look domain.AppLook) error {
	for _, tool := range look.Tools {
		if err := c.call(ctx, tool.Name, json.RawMessage(`{"region":"us-west1"}`)); err != nil {
			fmt.Fprintln(os.Stderr, tool.Name, err)
		}
	}
	if len(look.Resources) > 0 {
		_, _ = c.apps.ReadResource(ctx, c.endpoint, look.Resources[0].URI, ready)
	}
	if len(look.Prompts) > 0 {
		_, _ = c.apps.GetPrompt(ctx, c.endpoint, look.Prompts[0].Name, nil, ready)
	}
	return nil
}

func ready() error { return nil }
