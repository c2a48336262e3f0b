// Package build_test checks what holds for the whole source: who may import whom.
package build_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

// rule says what one package and those below it may import. The linter holds the
// same table; this test holds it for everybody who only runs the tests.
type rule struct {
	ours   []string // of this module; "x/..." stands for x and all below it
	others []string // when not nil: the only ones from outside the standard library
	never  []string // prefixes of import paths
}

const (
	gin   = "github.com/gin-gonic/"
	gorm  = "gorm.io/"
	asynq = "github.com/hibiken/"
	redis = "github.com/redis/"
)

var rules = map[string]rule{
	"openbot/domain": {others: []string{}, never: []string{"os", "net", "database/sql", "log", "math/rand", "crypto/rand"}},
	"openbot/domain/evidence": {ours: []string{"openbot/domain"}, others: []string{"github.com/go-jose/go-jose/v4", "github.com/gowebpki/jcs"},
		never: []string{"os", "net", "database/sql", "log", "math/rand", "crypto/rand"}},
	"openbot/domain/engine/...": {ours: []string{"openbot/domain/..."},
		never: []string{gin, gorm, asynq, redis}},
	"openbot/queue/...":      {ours: []string{"openbot/domain", "openbot/queue/..."}, never: []string{gin, gorm}},
	"openbot/model/...":      {ours: []string{"openbot/domain", "openbot/model/..."}, never: []string{gin, gorm}},
	"openbot/apps/...":       {ours: []string{"openbot/domain", "openbot/apps/..."}, never: []string{gin, gorm}},
	"openbot/mail/...":       {ours: []string{"openbot/domain"}, never: []string{gin, gorm}},
	"openbot/program/...":    {ours: []string{"openbot/domain", "openbot/program/..."}, never: []string{gin, gorm}},
	"openbot/web/...":        {ours: []string{"openbot/domain", "openbot/web/..."}, never: []string{gin, gorm}},
	"openbot/repository/...": {ours: []string{"openbot/domain", "openbot/repository/..."}, never: []string{gin, asynq}},
	// The suite holds every store to what the engine expects of it; tests alone use it.
	"openbot/repository/repositorytest": {ours: []string{"openbot/domain/...", "openbot/repository/..."}, never: []string{gin, asynq}},
	"openbot/api/...": {ours: []string{"openbot/domain/...", "openbot/web/...", "openbot/api/..."},
		never: []string{gorm, asynq}},
	"openbot/worker/...": {ours: []string{"openbot/domain/...", "openbot/model/...", "openbot/apps/...", "openbot/program/...", "openbot/queue/...", "openbot/worker/..."},
		never: []string{gorm, gin}},
	"openbot/scheduler/...": {ours: []string{"openbot/domain/...", "openbot/queue/...", "openbot/scheduler/..."},
		never: []string{gorm, gin}},
	"openbot/telemetry/...": {ours: []string{"openbot/domain/...", "openbot/telemetry/..."}, never: []string{gin, gorm, asynq, redis}},
	"openbot/config/...":    {ours: []string{"openbot/config/..."}, others: []string{"go.yaml.in/yaml/v3"}},
}

// Packages that are not part of the server may import everything, and no part of the
// server may import them.
var free = []string{"openbot", "openbot/build/...", "openbot/bench/..."}

func TestEveryPackageImportsOnlyWhatItMay(t *testing.T) {
	for importer, imports := range importsOf(t) {
		if matches(free, importer) {
			continue
		}
		law, ok := ruleOf(importer)
		if !ok {
			t.Errorf("%s stands in no rule: add it to the table here and in .golangci.yml", importer)
		}
		for _, imported := range imports {
			if fault := law.check(imported); fault != nil {
				t.Errorf("%s imports %s: %v", importer, imported, fault)
			}
		}
	}
}

func TestTheRulesCanFail(t *testing.T) {
	for _, c := range []struct {
		path, imported string
		allowed        bool
	}{
		{"openbot/domain", "strings", true},
		{"openbot/domain", "net/http", false},
		{"openbot/domain", "log/slog", false},
		{"openbot/domain", "math/rand/v2", false},
		{"openbot/domain", "github.com/google/uuid", false},
		{"openbot/domain", "openbot/domain/engine", false},
		{"openbot/domain/engine", "openbot/domain", true},
		{"openbot/domain/engine", "openbot/repository", false},
		{"openbot/domain/engine", "gorm.io/gorm", false},
		{"openbot/queue", "openbot/domain", true},
		{"openbot/queue", "openbot/domain/engine", false},
		{"openbot/apps/appstest", "openbot/apps", true},
		{"openbot/api", "openbot/domain/engine", true},
		{"openbot/api", "github.com/hibiken/asynqmon", false},
		{"openbot/worker", "openbot/model", true},
		{"openbot/worker", "openbot/repository", false},
		{"openbot/config", "go.yaml.in/yaml/v3", true},
		{"openbot/config", "github.com/spf13/cobra", false},
		{"openbot/repository", "openbot/domain/engine", false},
		{"openbot/repository/repositorytest", "openbot/domain/engine", true},
		{"openbot/repository", "openbot/build/testenv/services", false},
	} {
		law, ok := ruleOf(c.path)
		if fault := law.check(c.imported); !ok || (fault == nil) != c.allowed {
			t.Errorf("%s imports %s: got %v, want allowed = %v", c.path, c.imported, fault, c.allowed)
		}
	}
	if _, ok := ruleOf("openbot/domainother"); ok {
		t.Error("a package of another name fell under a rule")
	}
}

// The linter's globs are taken whole, so one that fits no file would pass in silence.
func TestTheLinterHasARuleForTheSameFolders(t *testing.T) {
	content, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	for pattern := range rules {
		folder, _ := strings.CutPrefix(pattern, "openbot/")
		glob := "${config-path}/" + folder + "/*.go"
		if top, below := strings.CutSuffix(folder, "/..."); below {
			glob = "${config-path}/" + top + "/**"
		}
		if folder == "repository/repositorytest" {
			glob = "!${config-path}/" + folder + "/**"
		}
		if !strings.Contains(string(content), `"`+glob+`"`) {
			t.Errorf(".golangci.yml has no rule for %s", glob)
		}
	}
}

// check says why a package under this rule may not import another, or nil.
func (r rule) check(imported string) error {
	for _, prefix := range r.never {
		if imported == prefix || strings.HasPrefix(imported, strings.TrimSuffix(prefix, "/")+"/") {
			return errors.New("this package keeps away from it")
		}
	}
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case first == "openbot":
		if !matches(r.ours, imported) {
			return errors.New("the layers do not allow it")
		}
	case strings.Contains(first, ".") && r.others != nil && !matches(r.others, imported):
		return errors.New("this package keeps to the standard library and the libraries of its rule")
	}
	return nil
}

// ruleOf gives the rule with the longest pattern that fits.
func ruleOf(importer string) (law rule, ok bool) {
	longest := ""
	for pattern, candidate := range rules {
		if matches([]string{pattern}, importer) && len(pattern) > len(longest) {
			longest, law, ok = pattern, candidate, true
		}
	}
	return law, ok
}

func matches(patterns []string, name string) bool {
	for _, pattern := range patterns {
		top, below := strings.CutSuffix(pattern, "/...")
		if name == top || (below && strings.HasPrefix(name, top+"/")) {
			return true
		}
	}
	return false
}

// importsOf gives the imports of every package of the module, on every system, those
// of its tests left out. It reads the files itself, so that a changed file makes the
// kept result of this test void.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	root, found := os.DirFS(".."), map[string][]string{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "node_modules" || base == "testdata" || base == "data"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go"):
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
		if err != nil {
			return err
		}
		importer := path.Join("openbot", path.Dir(name))
		found[importer] = append(found[importer], importsIn(file)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found["openbot/domain"]) == 0 {
		t.Fatal("the walk did not find the domain")
	}
	return found
}

func importsIn(file *ast.File) []string {
	var found []string
	for _, spec := range file.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			found = append(found, name)
		}
	}
	return found
}
