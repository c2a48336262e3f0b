// Evaluated before the program. It takes away what could reach outside or differ
// between two runs, and gives app and console. Everything that it uses after the
// program has started is taken into variables here: a program may change any
// built-in, and must not be able to change a call between here and Go by it.
(function (ask, print, finish, fail, seedLow, seedHigh, startedAt) {
  "use strict";
  const { construct, defineProperty } = Reflect;
  const { create, freeze, getPrototypeOf } = Object;
  const { stringify } = JSON;
  const { isError } = Error;
  const text = String;
  const FirstError = Error;
  const FirstTypeError = TypeError;
  const FirstPromise = Promise;
  const FirstDate = Date;

  const hide = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

  // What reads a clock, sees the garbage collector or could block.
  for (const name of ["WeakRef", "FinalizationRegistry", "SharedArrayBuffer", "Atomics"]) {
    delete globalThis[name];
  }

  // Code out of text is code that nobody saw when the program was shown.
  delete globalThis.eval;
  const noCode = function Function() {
    throw new FirstTypeError("A program cannot make code out of text.");
  };
  noCode.prototype = Function.prototype;
  for (const made of [function () {}, async function () {}, function* () {}, async function* () {}]) {
    hide(getPrototypeOf(made), "constructor", noCode);
  }
  hide(globalThis, "Function", noCode);

  // Math.random: sfc32.
  let a = seedLow, b = seedHigh, c = 0x9e3779b9 | 0, counter = 1;
  const next = () => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i++) next();
  hide(Math, "random", () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992);

  // Date: stands still at the start of the first run.
  const StillDate = function Date(...parts) {
    if (new.target === undefined) return text(new FirstDate(startedAt));
    return construct(FirstDate, parts.length === 0 ? [startedAt] : parts, new.target);
  };
  StillDate.prototype = FirstDate.prototype;
  hide(StillDate, "length", 7);
  hide(StillDate, "parse", FirstDate.parse);
  hide(StillDate, "UTC", FirstDate.UTC);
  hide(StillDate, "now", () => startedAt);
  hide(FirstDate.prototype, "constructor", StillDate);
  hide(globalThis, "Date", StillDate);

  // Calls without an answer. No prototype, so that no setter of the program sees them.
  const open = create(null);

  const app = create(null);
  app.call = {
    call(connection, tool, args, reason) {
      const { stack } = new FirstError();
      try {
        if (typeof connection !== "string" || typeof tool !== "string") {
          throw new FirstTypeError("app.call(connection, tool, args, reason) takes the connection and the tool as strings.");
        }
        if (reason === undefined) reason = "";
        if (typeof reason !== "string") {
          throw new FirstTypeError("app.call(connection, tool, args, reason) takes the reason as a string.");
        }
        if (args === undefined) args = {};
        const json = stringify(args);
        if (typeof json !== "string" || json[0] !== "{") {
          throw new FirstTypeError("app.call(connection, tool, args, reason) takes the arguments as one object.");
        }
        const index = ask(connection, tool, json, reason, stack);
        return new FirstPromise((resolve, reject) => {
          const waiting = create(null);
          waiting.resolve = resolve;
          waiting.reject = reject;
          waiting.stack = stack;
          open[index] = waiting;
        });
      } catch (error) {
        return new FirstPromise((_, reject) => reject(error));
      }
    },
  }.call;
  freeze(app.call);
  freeze(app);
  defineProperty(globalThis, "app", { value: app, enumerable: true });

  const show = (value) => {
    try {
      if (typeof value === "string") return value;
      if (isError(value)) return `${value.name}: ${value.message}`;
      if (typeof value === "object" && value !== null) return stringify(value) ?? text(value);
      return text(value);
    } catch {
      return "(a value that cannot be shown)";
    }
  };
  const log = (...values) => {
    let line = "";
    for (let i = 0; i < values.length; i++) line += (i === 0 ? "" : " ") + show(values[i]);
    print(line);
  };
  const consoleObject = {};
  for (const name of ["log", "info", "warn", "error", "debug"]) hide(consoleObject, name, log);
  hide(globalThis, "console", consoleObject);

  // What Go calls: with "run" and the program's function, or with "settle".
  const run = async (body) => {
    let json;
    try {
      const value = await body();
      json = stringify(value === undefined ? null : value) ?? "null";
    } catch (error) {
      let stack = "";
      try {
        if (isError(error)) stack = text(error.stack);
      } catch {}
      fail(show(error), stack);
      return;
    }
    finish(json);
  };
  const settle = (index, ok, answer) => {
    const waiting = open[index];
    delete open[index];
    if (ok) {
      waiting.resolve(answer);
      return;
    }
    const error = new FirstError(answer);
    error.stack = waiting.stack;
    waiting.reject(error);
  };
  return (command, first, ok, answer) => {
    if (command === "run") run(first);
    else settle(first, ok, answer);
  };
});
