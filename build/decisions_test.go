package build_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestEveryDecisionHasANumberATitleAndALineInTheIndex(t *testing.T) {
	index, err := os.ReadFile("../docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../docs/decisions/[0-9]*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no decision was found: %v", err)
	}
	name := regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	taken := map[string]string{}
	for _, file := range files {
		base := filepath.Base(file)
		part := name.FindStringSubmatch(base)
		if part == nil {
			t.Errorf("%s is not named NNNN-what-it-is-about.md", base)
			continue
		}
		if other, ok := taken[part[1]]; ok {
			t.Errorf("%s and %s have the same number", other, base)
		}
		taken[part[1]] = base
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		number, _ := strconv.Atoi(part[1])
		title, _, _ := strings.Cut(string(content), "\n")
		sentence, ok := strings.CutPrefix(title, fmt.Sprintf("# %d. ", number))
		if !ok {
			t.Errorf("%s starts with %q, want its number and its title", base, title)
		}
		if want := fmt.Sprintf("| [%d](%s) | %s |", number, base, sentence); !strings.Contains(string(index), want) {
			t.Errorf("the index lacks %q", want)
		}
	}
}
