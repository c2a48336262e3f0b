package program_test

import (
	"encoding/json"
	"strings"
	"testing"

	"openbot/program"
)

// TestGlobals holds the sandbox to the names that were looked at one by one. A name
// that a newer engine brings must be judged before it is let in.
func TestGlobals(t *testing.T) {
	got := here(t, `return Object.getOwnPropertyNames(globalThis).sort().join(" ")`)
	wantResult(t, got, `"AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError `+
		`Float16Array Float32Array Float64Array Function Infinity Int16Array Int32Array Int8Array InternalError Iterator JSON Map Math NaN `+
		`Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError `+
		`Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet app console decodeURI decodeURIComponent encodeURI `+
		`encodeURIComponent escape globalThis isFinite isNaN parseFloat parseInt undefined unescape"`)
}

func TestNothingOutside(t *testing.T) {
	for _, text := range []string{
		`std.open("/etc/passwd", "r")`, `os.open("/etc/passwd")`, `require("fs")`, `process.exit(1)`, `fetch("http://127.0.0.1")`,
		`setTimeout(() => {}, 1)`, `print(1)`, `ask("a", "b", "{}", "", "")`, `finish("1")`, `globalThis.fail("x", "")`,
		`await import("std")`, `await import("os")`, `await import("/etc/passwd")`, `await import("data:text/javascript,1")`,
		`eval("1")`, `(0, eval)("1")`, `Function("return this")()`, `new Function("return 1")()`, `(() => {}).constructor("return 1")()`,
		`(async () => {}).constructor("return 1")()`, `(function* () {}).constructor("return 1")()`, `(async function* () {}).constructor("return 1")()`,
		`Reflect.construct(Function, ["return 1"])`, `new (class extends Function {})("return 1")`, `app.call.constructor("return 1")()`,
		`Object.getPrototypeOf(async () => {}).constructor("1")`, `console.log.constructor("return 1")()`, `(function () { return this })().x`, `arguments.callee`,
		`app.x = 1`, `app.call = () => 1`, `app.__proto__.x`, `app.call.x = 1`, `globalThis.app = {}`, `delete globalThis.app`,
		`Object.setPrototypeOf(app, {})`, `Object.defineProperty(app, "call", {value: 1})`, `new WeakRef({})`, `new SharedArrayBuffer(8)`,
	} {
		t.Run(text, func(t *testing.T) {
			got := here(t, text)
			wantStatus(t, got, program.StatusFailed)
		})
	}
}

func TestHelpfulFunction(t *testing.T) {
	wantResult(t, here(t, `return [(() => 1) instanceof Function, Function.prototype === Object.getPrototypeOf(() => 1)]`), `[true,true]`)
}

// TestBuiltinsChanged changes what the sandbox itself could use after the start.
func TestBuiltinsChanged(t *testing.T) {
	const text = `const {call} = app; const taken = [];
const names = ["resolve", "reject", "stack", "value", "then", "connection", "1"];
for (let i = 0; i < names.length; i++) {
  const accessor = Object.create(null), name = names[i];
  accessor.set = () => { taken.count = (taken.count ?? '') + name };
  accessor.get = () => undefined;
  Object.defineProperty(Object.prototype, name, accessor);
}
const changes = [[JSON, "stringify"], [JSON, "parse"], [Object, "create"], [Reflect, "apply"], [Reflect, "defineProperty"],
    [Array.prototype, "push"], [Promise.prototype, "then"], [Promise, "resolve"], [globalThis, "Promise"], [globalThis, "Error"],
    [globalThis, "TypeError"], [globalThis, "String"], [Function.prototype, "call"], [Function.prototype, "apply"], [Error, "isError"],
    [Array.prototype, Symbol.iterator], [Map.prototype, "get"], [Map.prototype, "set"]];
for (let i = 0; i < changes.length; i++) {
  const object = changes[i][0], name = changes[i][1];
  object[name] = () => { taken.names = (taken.names ?? '') + (typeof name === 'string' ? name : 'iterator'); return {connection: "evil"} };
}
Error.prepareStackTrace = () => "at evil (<eval>:1:1)"; Error.stackTraceLimit = 0;
const first = await call("mail", "send", {to: "ann"}, "why");
return first + taken.names + taken.count;`
	waiting := here(t, text)
	wantStatus(t, waiting, program.StatusWaiting)
	call := waiting.Trace.Calls[0]
	if call.Connection != "mail" || call.Tool != "send" || string(call.Arguments) != `{"to":"ann"}` || call.Reason != "why" || call.Position.Line != 18 {
		t.Fatalf("the call became %+v", call)
	}
	wantResult(t, again(text, waiting, done("sent ")), `"sent undefinedundefined"`)
}

func TestArgumentsAreWhatJSONSays(t *testing.T) {
	const text = `await app.call("mail", "send", {z: 1, a: {["__proto__"]: {x: 1}}, toString: 1, gone: undefined, f() {},
d: new Date(0), n: NaN, big: 1e21, lone: "\ud800", nul: "a\0b", uni: "😀é", constructor: "c"})`
	got := here(t, text)
	wantStatus(t, got, program.StatusWaiting)
	if want := `{"z":1,"a":{"__proto__":{"x":1}},"toString":1,"d":"1970-01-01T00:00:00.000Z","n":null,"big":1e+21,"lone":"\ud800","nul":"a\u0000b","uni":"😀é","constructor":"c"}`; string(got.Trace.Calls[0].Arguments) != want {
		t.Fatalf("the arguments are %s, want %s", got.Trace.Calls[0].Arguments, want)
	}
	wantStatus(t, again(text, got, done("")), program.StatusFinished)
}

func TestText(t *testing.T) {
	const text = "const s = 'nul \x00 😀 é \u2028'; console.log(s, s.length); return await app.call('a\x00b', '😀', {s}, s)"
	waiting := here(t, text)
	wantStatus(t, waiting, program.StatusWaiting)
	if call := waiting.Trace.Calls[0]; call.Connection != "a\x00b" || call.Tool != "😀" || call.Reason != "nul \x00 😀 é \u2028" {
		t.Fatalf("the call is %+v", call)
	}
	got := again(text, waiting, done("back \x00 😀"))
	wantStatus(t, got, program.StatusFinished)
	var back string
	if err := json.Unmarshal(got.Result, &back); err != nil || back != "back \x00 😀" {
		t.Fatalf("%q came back (%v)", back, err)
	}
	if got.Output != "nul \x00 😀 é \u2028 12\n" {
		t.Fatalf("the output is %q", got.Output)
	}
}

func TestClosesTheWrapper(t *testing.T) {
	for _, text := range []string{
		"})(); (async () => { return 1", "}); app.call('a', 'b', {}); (async () => {", "})(globalThis.x = 1); (() => { return 2",
		"}, 5, {", "}) /* ", "} } }", "`", "/*", "'", "-->", "<!--", "#!x",
	} {
		t.Run(text, func(t *testing.T) {
			got := here(t, text)
			if got.Status != program.StatusFailed && got.Status != program.StatusWaiting && got.Status != program.StatusFinished {
				t.Fatalf("the program is %s", got.Status)
			}
		})
	}
}

func TestConsole(t *testing.T) {
	got := here(t, `console.log("a", 1, null, undefined, {b: [2]}, new TypeError("t"), 10n, Symbol("s"), () => 1);
console.error("e"); console.info(); return undefined`)
	wantResult(t, got, "null")
	if want := "a 1 null undefined {\"b\":[2]} TypeError: t 10 Symbol(s) () => 1\ne\n\n"; got.Output != want {
		t.Fatalf("the output is %q, want %q", got.Output, want)
	}
}

func TestOrderOfKeys(t *testing.T) {
	const text = `const o = JSON.parse(await app.call("a", "b", {})); const keys = []; for (const k in o) keys.push(k); return keys.join()`
	waiting := here(t, text)
	for range 20 {
		wantResult(t, again(text, waiting, done(`{"zeta":1,"10":1,"alpha":1,"9":1,"mid":1}`)), `"9,10,zeta,alpha,mid"`)
	}
}

func TestZoneIsUTC(t *testing.T) {
	t.Setenv("TZ", "Asia/Tokyo")
	got, err := newRunner(t, program.Limits{}).Run(t.Context(), source(`return [new Date(2020, 0, 1).getTime(), new Date().getTimezoneOffset()]`), nil, program.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	wantResult(t, got, `[1577836800000,0]`)
}

func TestLongCall(t *testing.T) {
	got := here(t, `try { await app.call("a", "b", {x: "y".repeat(2 ** 20)}) } catch (e) { return e.message }`)
	wantStatus(t, got, program.StatusFinished)
	if !strings.Contains(string(got.Result), "1 MiB at most") {
		t.Fatalf("the error is %s", got.Result)
	}
	const text = `return await app.call("a", "b", {})`
	got = again(text, here(t, text), done(strings.Repeat("x", 1<<20+1)))
	wantStatus(t, got, program.StatusFailed)
	wantMessage(t, got, "longer than 1 MiB")
}
