package web

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// foreign are scripts whose letters are taken for Latin ones.
var foreign = []*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu,
	unicode.Georgian, unicode.Deseret, unicode.Glagolitic}

// twins are the letters of other scripts that look just like a Latin one. A word of
// them alone is no word of its script but one in disguise.
const twins = "аеорсухіјѕһԁԛԝӏАВЕЅІЈКМНОРСТУХҮԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧοναρυίϲյոսցօ"

// alike are characters that stand for a plain one wherever they are: letters, dots,
// slashes and colons in disguise.
const alike = "ɑɡɩıȷʟꞌꓸ․⁄∕⧸╱꞉∶ːﹸ։ʹ｡"

// lookAlikes gives where in a text characters stand that look like others, in order.
func lookAlikes(text string) []int {
	ascii := true
	for i := 0; i < len(text); i++ {
		if text[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		return nil
	}
	var out []int
	start := 0
	for at, r := range text {
		if unicode.IsSpace(r) {
			out = append(out, inWord(text[start:at], start)...)
			start = at + utf8.RuneLen(r)
		}
	}
	return append(out, inWord(text[start:], start)...)
}

// inWord looks at what stands between two spaces. Letters of another script count
// where they are mixed with Latin ones, or where all of them have a Latin twin.
func inWord(word string, offset int) []int {
	latin, strangers, disguised := false, 0, 0
	for _, r := range word {
		latin = latin || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if r >= 0x80 && unicode.In(r, foreign...) {
			strangers++
			if strings.ContainsRune(twins, r) {
				disguised++
			}
		}
	}
	pretends := strangers > 0 && (latin || disguised == strangers)
	var out []int
	marks := 0
	for at, r := range word {
		if r < 0x80 {
			marks = 0
			continue
		}
		if unicode.Is(unicode.Mn, r) {
			marks++
		} else {
			marks = 0
		}
		// A heap of marks on one letter covers the lines around it.
		if styled(r) || marks > 2 || pretends && unicode.In(r, foreign...) {
			out = append(out, offset+at)
		}
	}
	return out
}

// styled reports characters that stand for a plain one in whatever company: full
// width, mathematical and enclosed letters, and the list above.
func styled(r rune) bool {
	switch {
	case r >= 0xFF01 && r <= 0xFF5E, r >= 0x1D400 && r <= 0x1D7FF, r >= 0x2460 && r <= 0x24FF, r >= 0x1F110 && r <= 0x1F189,
		r >= 0x2100 && r <= 0x214F && unicode.IsLetter(r), r >= 0x2160 && r <= 0x2188:
		return true
	}
	return strings.ContainsRune(alike, r)
}
