// Command openbot lets AI bots work with real tools while people stay in control.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"openbot/config"
	"openbot/program"
	_ "time/tzdata" // zones of triggers, also where the machine has none
)

// version is set by the build.
var version = "dev"

func main() {
	if len(os.Args) > 1 && os.Args[1] == program.ChildArgument {
		os.Exit(program.Main(os.Stdin, os.Stdout)) // this process runs one program of a Bot and nothing else
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "openbot:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var file string
	root := &cobra.Command{Use: "openbot", Short: "Bots work with real tools; people stay in control.",
		Version: version, SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().StringVar(&file, "config", "", "settings file (YAML); the environment wins over it")
	root.AddCommand(
		roleCommand("serve", "Run everything in one process.", &file),
		roleCommand("api", "Run the API and the inbox.", &file),
		roleCommand("worker", "Run model steps and App calls.", &file),
		roleCommand("scheduler", "Ring for what is due.", &file),
		migrateCommand(&file),
		tokenCommand(&file),
		verifyCommand(&file),
		auditCommand(&file),
		keysCommand(&file),
		&cobra.Command{Use: "config", Short: "Print the settings in force, secrets masked.", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				cfg, err := config.Load(file, os.Environ())
				if err != nil {
					return err
				}
				fmt.Fprint(cmd.OutOrStdout(), cfg.Redacted())
				return nil
			}})
	return root
}

func roleCommand(role, short string, file *string) *cobra.Command {
	var example bool
	cmd := &cobra.Command{Use: role, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.LoadRole(*file, os.Environ(), role)
			if err != nil {
				return err
			}
			app, err := Open(cmd.Context(), Options{Config: cfg, Role: role, Example: example, Out: cmd.OutOrStdout()})
			if err != nil {
				return err
			}
			return app.Run(cmd.Context())
		}}
	if role == "serve" {
		cmd.Flags().BoolVar(&example, "example", false, "offer the example App also on PostgreSQL")
	}
	return cmd
}

func migrateCommand(file *string) *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Bring the database schema up to date, or show where it stands."}
	run := func(use, short string, do func(context.Context, *cobra.Command, *App) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(*file, os.Environ())
			if err != nil {
				return err
			}
			app, err := OpenStore(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return errors.Join(do(cmd.Context(), cmd, app), app.Close())
		}}
	}
	cmd.AddCommand(
		run("up", "Bring the schema up to date.", func(ctx context.Context, cmd *cobra.Command, a *App) error {
			if err := a.store.Migrate(ctx); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "The schema is up to date.")
			return nil
		}),
		run("status", "Show the version of the schema.", func(ctx context.Context, cmd *cobra.Command, a *App) error {
			status, err := a.store.MigrationStatus(ctx)
			if err != nil {
				return err
			}
			for _, m := range status {
				state := "not applied: run openbot migrate up"
				if m.AppliedAt != nil {
					state = "applied " + m.AppliedAt.UTC().Format(time.RFC3339)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%-24s %s\n", m.Name, state)
			}
			return nil
		}))
	return cmd
}

func tokenCommand(file *string) *cobra.Command {
	var name, member string
	var scopes []string
	var expires time.Duration
	create := &cobra.Command{Use: "create", Short: "Make a token on this machine and print it, this once.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(*file, os.Environ())
			if err != nil {
				return err
			}
			app, err := OpenStore(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			secret, err := app.createToken(cmd.Context(), name, member, scopes, expires)
			if err != nil {
				return errors.Join(err, app.Close())
			}
			fmt.Fprintln(cmd.OutOrStdout(), secret)
			return app.Close()
		}}
	create.Flags().StringVar(&name, "name", "made by openbot token create", "name of the token")
	create.Flags().StringVar(&member, "member", "", "ID of the Member that it acts as; the first admin when left out")
	create.Flags().StringSliceVar(&scopes, "scope", []string{"admin", "*"}, "scopes; repeat the flag for more")
	create.Flags().DurationVar(&expires, "expires", 0, "time until it expires, e.g. 720h; never when left out")
	cmd := &cobra.Command{Use: "token", Short: "Make tokens."}
	cmd.AddCommand(create)
	return cmd
}
