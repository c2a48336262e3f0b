package domain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"openbot/domain"
)

// fake makes a secret of a known form out of its parts, so that no file of the source
// holds one that scanners would report.
func fake(prefix string, n int) string {
	const letters = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwxYz"
	return prefix + strings.Repeat(letters, n/len(letters)+1)[:n]
}

var (
	plainly  = domain.NewRedactor(domain.DefaultSettings().Redaction)
	strictly = domain.NewRedactor(domain.Redaction{Keys: append(domain.DefaultSettings().Redaction.Keys, "Customer PIN", "Kundengeheimnis", "密码"), Mail: true, Phone: true})
)

// redactions read like case law: X stands for what must be gone.
var redactions = []struct{ name, in, out string }{
	// By name.
	{"a password", `{"password":"hunter2","user":"bob"}`, `{"password":"X","user":"bob"}`},
	{"names in camel case", `{"apiKey":"a","openaiApiKey":"b","dbPassword":"c","accessToken":"d","APIKey":"e","userAPIKeys":["f"]}`,
		`{"apiKey":"X","openaiApiKey":"X","dbPassword":"X","accessToken":"X","APIKey":"X","userAPIKeys":"X"}`},
	{"names in kebab, snake and capitals", `{"x-api-key":"a","API_KEY":"b","Api Key":"c","api.key":"d","AWS_SECRET_ACCESS_KEY":"e","client-secret":"f"}`,
		`{"x-api-key":"X","API_KEY":"X","Api Key":"X","api.key":"X","AWS_SECRET_ACCESS_KEY":"X","client-secret":"X"}`},
	{"names run together", `{"apikey":"a","ACCESSTOKEN":"b","PGPASSWORD":"c","clientsecret":"d","dbpwd":"e"}`, `{"apikey":"X","ACCESSTOKEN":"X","PGPASSWORD":"X","clientsecret":"X","dbpwd":"X"}`},
	{"names with digits", `{"password2":"a","token1":"b","secret_3":"c","oauth2Token":"d"}`, `{"password2":"X","token1":"X","secret_3":"X","oauth2Token":"X"}`},
	{"a name written with escapes", `{"p\u0061ssword":"hunter2"}`, `{"p\u0061ssword":"X"}`},
	{"words that only look like it", `{"tokenizer":"a","secretary":"Ann","passport":"no","authorize":"b","monkey":"c","keyboard":"d","cookies_accepted":true}`,
		`{"tokenizer":"a","secretary":"Ann","passport":"no","authorize":"b","monkey":"c","keyboard":"d","cookies_accepted":true}`},
	{"a number under a secret name", `{"passcode":4711,"secret":-1.5e3}`, `{"passcode":"X","secret":"X"}`},
	{"what counts is no secret", `{"max_tokens":500,"token_count":7,"tokenLimit":9,"tokens":["a"],"passwords":"b","password_length":"12 or more"}`,
		`{"max_tokens":500,"token_count":7,"tokenLimit":9,"tokens":"X","passwords":"X","password_length":"X"}`},
	{"nothing is hidden in nothing", `{"password":null,"secret":true,"token":false,"api_key":""}`, `{"password":null,"secret":true,"token":false,"api_key":""}`},
	{"an object under a secret name", `{"credentials":{"user":"bob","nested":[1,{"a":"b"}]},"after":1}`, `{"credentials":"X","after":1}`},
	{"a list under a secret name", `{"secrets":["a","b",3]}`, `{"secrets":"X"}`},
	{"deep below", `{"a":[{"b":{"c":[[{"token":"t"}]]}}]}`, `{"a":[{"b":{"c":[[{"token":"X"}]]}}]}`},
	{"a name beside its value", `[{"name":"Authorization","value":"abc"},{"value":"v","key":"x-api-key"},{"name":"Accept","value":"*/*"}]`,
		`[{"name":"Authorization","value":"X"},{"value":"X","key":"x-api-key"},{"name":"Accept","value":"*/*"}]`},
	{"a value beside its name that holds more", `{"header":"Cookie","values":["a",{"password":"b"}],"more":1}`, `{"header":"Cookie","values":"X","more":1}`},
	{"pairs", `{"headers":[["Authorization","abc"],["Accept","json"],["a","b","c"]]}`, `{"headers":[["Authorization","X"],["Accept","json"],["a","b","c"]]}`},
	{"arguments of a command", `["login","--password","hunter2","--user","bob","-token","t"]`, `["login","--password","X","--user","bob","-token","X"]`},
	{"short words at the end of a name", `{"pass":"a","dbPass":"b","smtp_pw":"c","auth":"d","passThrough":"e","authMode":"f","compass":"g"}`,
		`{"pass":"X","dbPass":"X","smtp_pw":"X","auth":"X","passThrough":"e","authMode":"f","compass":"g"}`},
	{"numbers of accounts by name", `{"accountNumber":"12345678","account_no":1,"IBAN":"x","cardNumber":"1","cvv":123,"routing-number":"2","account":"Sales"}`,
		`{"accountNumber":"X","account_no":"X","IBAN":"X","cardNumber":"X","cvv":"X","routing-number":"X","account":"Sales"}`},

	// In text.
	{"an assignment", "password=hunter2 user=bob", "password=X user=bob"},
	{"a mark and spaces", "Password :  hunter2\nUser: bob", "Password :  X\nUser: bob"},
	{"on the next line", "Your password:\n\n  hunter2\n\nRegards", "Your password:\n\n  X\n\nRegards"},
	{"in quotes", `api_key = 'a b c' and secret="d \" e" done`, `api_key = 'X' and secret="X" done`},
	{"quotes that never close", "token: \"abc def\nnext line", "token: \"X\nnext line"},
	{"an arrow", `"password" => 'x', 'user' => 'bob'`, `"password" => 'X', 'user' => 'bob'`},
	{"words before it", "Here is the API key: abc and the account number: 77", "Here is the API key: X and the account number: X"},
	{"in bold", "**Password:** hunter2 ok", "**Password:** X ok"},
	{"a query", "https://a.example/x?token=abc&page=2&api_key=d#top", "https://a.example/x?token=X&page=2&api_key=X"},
	{"a form", "user=bob&password=p%26w&next=1", "user=bob&password=X&next=1"},
	{"an escaped mark", "password%3Dhunter2", "password%3DX"},
	{"a signed address", "https://s3.example/b/k?X-Amz-Signature=abc123&X-Amz-Date=2026 or https://b.example/?sig=aa%2F&se=1",
		"https://s3.example/b/k?X-Amz-Signature=X&X-Amz-Date=2026 or https://b.example/?sig=X&se=1"},
	{"markup", `<login><password>hunter2</password><user>bob</user><api-key type="x">k</api-key></login>`, `<login><password>X</password><user>bob</user><api-key type="x">X</api-key></login>`},
	{"flags", "mysql --password hunter2 --host db; curl -u bob:pw http://a.example", "mysql --password X --host db; curl -u bob:X http://a.example"},
	{"a header", "curl -H 'Authorization: Digest username=\"bob\", response=\"abc\"' -d x", "curl -H 'Authorization: X' -d x"},
	{"a header to the end of its line", "Authorization: Digest username=\"bob\", response=\"abc\"\nAccept: json\nCookie: a=b; c=d\nHost: h", "Authorization: X\nAccept: json\nCookie: X\nHost: h"},
	{"a scheme before the token", "token: Bearer abc next", "token: X next"},
	{"told in words", "The password is hunter2, the secret is out and the token is expired.", "The password is X the secret is out and the token is expired."},
	{"words of a phrase", "passphrase: correct horse battery staple\nnext", "passphrase: X\nnext"},
	{"a long text of YAML", "password: |\n  hunter2\n  more\nuser: bob", "password: X\nuser: bob"},
	{"a table", "| password | hunter2 |\n| user | bob |", "| password | X |\n| user | bob |"},
	{"a file of logins", "machine h login bob password hunter2 port 1", "machine h login bob password X port 1"},
	{"quotes of markup and addresses", "{&quot;password&quot;:&quot;hunter2&quot;} %22token%22%3A%22hunter2%22", "{&quot;password&quot;:&quot;X %22token%22%3A%22X"},
	{"JSON within text", `Body: {"password":"a\"b","user":"c"} end`, `Body: {"password":"X","user":"c"} end`},
	{"escaped JSON within text", `Body: {\"password\":\"a\\\"b\",\"user\":\"c\"} end`, `Body: {\"password\":\"X\",\"user\":\"c\"} end`},
	{"a text that ends in a mark", `{"q":"Enter your password:","b":"hello"}`, `{"q":"Enter your password:","b":"hello"}`},
	{"plain prose", "The secret of good bread: time. See chapter token-ring; bearer of news; basic facts.", "The secret of good bread: time. See chapter token-ring; bearer of news; basic facts."},

	// JSON in texts.
	{"an object in a text", `{"body":"{\"password\":\"hunter2\",\"n\":1}"}`, `{"body":"{\"password\":\"X\",\"n\":1}"}`},
	{"an object in a text in a text", `{"a":"{\"b\":\"{\\\"token\\\":\\\"t\\\"}\"}"}`, `{"a":"{\"b\":\"{\\\"token\\\":\\\"X\\\"}\"}"}`},
	{"a text in a text", `{"a":"\"password=x\""}`, `{"a":"\"password=X\""}`},
	{"a list in a text with its spaces", `{"a":" [ {\"secret\" : 1} , 2 ] "}`, `{"a":" [ {\"secret\" : \"X\"} , 2 ] "}`},

	// By form.
	{"keys of many houses", fake("sk-proj-", 40) + " " + fake("ghp_", 36) + " " + fake("github_pat_", 60) + " " + fake("glpat-", 20) + " " + fake("xoxb-", 40) + " " +
		fake("AIza", 35) + " " + fake("hf_", 34) + " " + fake("npm_", 36) + " " + fake("sk_live_", 24) + " " + fake("obt_", 43) + " " + fake("ya29.", 60), "X X X X X X X X X X X"},
	{"a key of AWS", "AKIA" + "ABCDEFGHIJKLMNOP and AKIA" + "ABCDEFGHIJKLMNOPQ", "X and AKIA" + "ABCDEFGHIJKLMNOPQ"},
	{"a secret key of AWS", "id " + fake("", 40) + " and " + fake("", 40) + ".", "id X and X."},
	{"a longer run of letters", fake("", 39) + " " + fake("", 41), fake("", 39) + " " + fake("", 41)},
	{"a key at the end of a sentence", "Use " + fake("ghp_", 36) + ".", "Use X."},
	{"a key after an escape", `a%20` + fake("sk-", 40) + ` b\n` + fake("sk-", 40), `a%20X b\nX`},
	{"a token of a chat", "987654321:" + fake("", 35) + " is the bot", "X is the bot"},
	{"an address of a hook", "https://hooks.slack.com/" + "services/T00000000/B00000000/" + fake("", 24), "https://X"},
	{"a JSON Web Token", "t " + fake("eyJ", 20) + "." + fake("eyJ", 30) + "." + fake("", 43) + " e", "t X e"},
	{"a bearer", "Bearer abc.def-1 and bearer  QWERTYUIOPASDFGHJKLZ", "Bearer X and bearer  X"},
	{"a basic header", "Basic " + "Ym9iOmh1bnRlcjI=" + " or Basic information", "Basic X or Basic information"},
	{"a private key", "Key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nbye", "Key:\nX\nbye"},
	{"a private key in one line", `a -----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY----- b`, `a X b`},
	{"a private key without an end", "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nmore", "a\nX"},
	{"a private key in base64", "client-key-data: LS0tLS1CRUdJTiBSU0Eg" + fake("", 60) + "==", "client-key-data: X"},
	{"a private key of PGP", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----\nbye", "X\nbye"},
	{"a public key is public", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"},
	{"a password in an address", "postgres://bob:hunter2@db.example:5432/app?x=1", "postgres://bob:X@db.example:5432/app?x=1"},
	{"a password with what it should not hold", "redis://:p/a@s?s@h:1/0 and amqp://u:p@ss@h", "redis://:X@h:1/0 and amqp://u:X@h"},
	{"a token in place of a name", "https://" + fake("", 30) + ":x-oauth-basic@git.example/a", "https://X:X@git.example/a"},
	{"addresses without one", "ssh://git@host.example/a http://h:8080/a@b http://[::1]:80/a@b ws://h", "ssh://git@host.example/a http://h:8080/a@b http://[::1]:80/a@b ws://h"},
	{"cards", "4111 1111 1111 1111, 5500-0000-0000-0004; 378282246310005 6011.1111.1111.1117 3530111333300000 36227206271667", "X, X; X X X X"},
	{"a card as a number", `{"a":4111111111111111,"b":4.111111111111111e15,"c":"4111111111111111"}`, `{"a":"X","b":"X","c":"X"}`},
	{"numbers that are no cards", "4111111111111112 1758182400000 1758182400000000000 12345678901234567890 0000000000000000", "4111111111111112 1758182400000 1758182400000000000 12345678901234567890 0000000000000000"},
	{"a card among numbers", "12 4111 1111 1111 1111 12/28 123", "12 X 12/28 123"},
	{"IBANs", "DE89 3704 0044 0532 0130 00, GB29NWBK60161331926819 and de89370400440532013000.", "X, X and X."},
	{"words and a wrong IBAN", "EU27 countries agreed on a common plan; DE88 3704 0044 0532 0130 00", "EU27 countries agreed on a common plan; DE88 3704 0044 0532 0130 00"},
	{"numbers of accounts in words", "Account 12345678, acct no. 123-456-789, sort code 12-34-56, Konto: 99887766; account 42", "Account X, acct no. X, sort code X, Konto: X; account 42"},
	{"harmless things", `{"id":"con_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d","uuid":"7c1e2d3f-4a5b-4c6d-8e9f-0a1b2c3d4e5f","at":"2026-09-18T08:00:00.000Z","sha":"da39a3ee5e6b4b0d3255bfef95601890afd80709","price":1299.99,"path":"/usr/local/bin/openbot","n":1758182400000}`,
		`{"id":"con_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d","uuid":"7c1e2d3f-4a5b-4c6d-8e9f-0a1b2c3d4e5f","at":"2026-09-18T08:00:00.000Z","sha":"da39a3ee5e6b4b0d3255bfef95601890afd80709","price":1299.99,"path":"/usr/local/bin/openbot","n":1758182400000}`},
	{"mail and phones are shown", `{"to":"ops@example.test","phone":"+49 171 1234567"}`, `{"to":"ops@example.test","phone":"+49 171 1234567"}`},

	// In names.
	{"a secret in a name", `{"` + fake("ghp_", 36) + `":1,"` + fake("ghp_", 30) + `":2,"a":3}`, `{"X":1,"[redacted] 2":2,"a":3}`},
	{"the document's own example", `{ "to": "ops@example.test", "subject": "Weekly digest" }`, `{ "to": "ops@example.test", "subject": "Weekly digest" }`},
}

func TestSecretsAreMasked(t *testing.T) {
	for _, c := range redactions {
		t.Run(c.name, func(t *testing.T) { redactsTo(t, plainly, c.in, c.out) })
	}
}

// Personal data and more names, as the settings say.
func TestTheSettingsMaskMore(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"mail", "To ops@example.test, Bob <bob.b+x@mail.example.org>.", "To X, Bob <X>."},
		{"mail in an address", "mailto:a@b.example?cc=c%40d.example", "mailto:X?cc=X"},
		{"mail in other letters", "jürgen@müller.example ann＠example.com \"a b\"@c.example", "X X X"},
		{"no mail", "react@18.2.0 @bob a @ b", "react@18.2.0 @bob a @ b"},
		{"a resource", "mail:ops@example.test", "mail:X"},
		{"phones", "+49 171 1234567, (555) 123-4567, 555-123-4567, 1-800-555-0199, 0171/1234567, 01 42 68 53 00, +15551234567", "X, X, X, X, X, X, X"},
		{"a phone by the words before it", "Call 5551234 or phone no. 1234567", "Call X or phone no. X"},
		{"phones by name", `{"phone":"x","mobilePhone":5551234567,"tel":null,"fax_number":"1"}`, `{"phone":"X","mobilePhone":"X","tel":null,"fax_number":"X"}`},
		{"no phones", "2026-09-18, 18.09.2026 10:00, 192.168.100.200, 10.000.000 items, order 1234567, 3.14159265", "2026-09-18, 18.09.2026 10:00, 192.168.100.200, 10.000.000 items, order 1234567, 3.14159265"},
		{"names of the settings", `{"customerPin":"1","CUSTOMER-PIN":2,"kundenGeheimnis":"3","密码":"4","我的密码":"5","pin":"6"}`,
			`{"customerPin":"X","CUSTOMER-PIN":"X","kundenGeheimnis":"X","密码":"X","我的密码":"X","pin":"6"}`},
		{"names of the settings in text", "密码：hunter2 Customer PIN: 1234", "密码：X Customer PIN: X"},
	} {
		t.Run(c.name, func(t *testing.T) { redactsTo(t, strictly, c.in, c.out) })
	}
}

// A name that has neither letter nor digit means itself alone, and no setting takes
// away what is always masked.
func TestTheSettingsCannotUnmask(t *testing.T) {
	r := domain.NewRedactor(domain.Redaction{Keys: []string{"***", "-"}})
	redactsTo(t, r, `{"***":"a","**":"b","password":"c","token":"d","-":"e"}`, `{"***":"X","**":"b","password":"X","token":"d","-":"X"}`)
	r = domain.NewRedactor(domain.Redaction{})
	redactsTo(t, r, `{"secret":"a","apiKey":"b","note":"password: c"}`, `{"secret":"X","apiKey":"X","note":"password: X"}`)
}

// redactsTo holds a text, and it as JSON, against what must come out.
func redactsTo(t *testing.T, r *domain.Redactor, in, want string) {
	t.Helper()
	want = strings.ReplaceAll(want, "X", domain.Redacted)
	want = strings.ReplaceAll(want, domain.Redacted+"-Amz", "X-Amz")
	got := r.Text(in)
	if got != want {
		t.Errorf("%s\nbecame %s\nnot    %s", in, got, want)
	}
	if again := r.Text(got); again != got {
		t.Errorf("%s\nbecame %s the second time", got, again)
	}
	raw, err := json.Marshal([]string{in})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	if err := json.Unmarshal(r.JSON(raw), &list); err != nil || len(list) != 1 || list[0] != want {
		t.Errorf("in a list %s\nbecame %q\nnot    %s", in, list, want)
	}
	if json.Valid([]byte(in)) && !json.Valid(r.JSON([]byte(in))) {
		t.Errorf("%s became %s, which is no JSON", in, r.JSON([]byte(in)))
	}
}

func TestWhatIsNoJSONIsMaskedWhole(t *testing.T) {
	for _, raw := range []string{``, `{`, `{"a":1} x`, `password`, "\x00"} {
		if got := string(plainly.JSON([]byte(raw))); got != `"`+domain.Redacted+`"` {
			t.Errorf("%q became %s", raw, got)
		}
	}
	if got := string(plainly.JSON([]byte(` {"a" : [ 1.0e2 , "<b>" ] }`))); got != ` {"a" : [ 1.0e2 , "<b>" ] }` {
		t.Errorf("what holds no secret became %s", got)
	}
}

// Whatever nests too deep is masked rather than shown.
func TestDepthHidesNothing(t *testing.T) {
	for _, c := range []struct{ open, end string }{{`[`, `]`}, {`{"a":`, `}`}} {
		in := strings.Repeat(c.open, 300) + `"` + fake("ghp_", 36) + `"` + strings.Repeat(c.end, 300)
		if got := string(plainly.JSON([]byte(in))); strings.Contains(got, "ghp_") || !json.Valid([]byte(got)) {
			t.Errorf("got %s", got)
		}
	}
	in := `"hunter2"`
	for range 12 {
		raw, err := json.Marshal(map[string]string{"a": in})
		if err != nil {
			t.Fatal(err)
		}
		in = string(raw)
	}
	in = strings.Replace(in, "hunter2", "password=hunter2", 1)
	if got := plainly.Text(in); strings.Contains(got, "hunter2") {
		t.Errorf("got %s", got)
	}
}
