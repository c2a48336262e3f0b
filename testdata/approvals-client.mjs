// A client of the approvals routes as somebody writes it who has read their document
// and nothing else. It prints what it saw as one line of JSON, or ends with an error.

const base = process.env.OPENBOT_API_URL;
const key = process.env.OPENBOT_API_KEY;
const readKey = process.env.OPENBOT_READ_KEY;

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const fields = ['createdAt', 'decision', 'expiresAt', 'id', 'inputRedacted', 'reason', 'resource', 'reviewVerdict', 'runId', 'tags', 'toolName'];

function check(so, what) {
  if (!so) throw new Error(what);
}

function call(path, { method = 'GET', token = key, body } = {}) {
  const headers = { accept: 'application/json' };
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  return fetch(`${base}/api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}

async function ok(path, options) {
  const res = await call(path, options);
  if (!res.ok) throw new Error(`${path}: ${res.status} ${await res.text()}`);
  return res.json();
}

// refused makes a call that must fail, and gives its code.
async function refused(status, code, path, options) {
  const res = await call(path, options);
  const text = await res.text();
  check(res.status === status, `${path} gave ${res.status}, not ${status}: ${text}`);
  const body = JSON.parse(text);
  check(Object.keys(body).join() === 'error' && Object.keys(body.error).sort().join() === 'code,message', `${path} gave another error: ${text}`);
  check(body.error.code === code && body.error.message.length > 0, `${path} gave ${text}, not ${code}`);
  return res;
}

function shaped(approval) {
  check(Object.keys(approval).sort().join() === fields.join(), `the fields are ${Object.keys(approval)}`);
  check(uuid.test(approval.id) && uuid.test(approval.runId), `the IDs are ${approval.id} and ${approval.runId}`);
  check(iso.test(approval.createdAt) && iso.test(approval.expiresAt), `the times are ${approval.createdAt} and ${approval.expiresAt}`);
  check(new Date(approval.expiresAt) > new Date(approval.createdAt), 'it expires before it was made');
  check(typeof approval.toolName === 'string' && Array.isArray(approval.tags), 'toolName or tags');
  check(approval.resource === null || typeof approval.resource === 'string', 'resource');
  check(approval.reason === null || typeof approval.reason === 'string', 'reason');
  check([null, 'allow', 'block', 'unclear'].includes(approval.reviewVerdict), 'reviewVerdict');
  check([null, 'approved', 'denied'].includes(approval.decision), 'decision');
  check(typeof approval.inputRedacted === 'object' && approval.inputRedacted !== null, 'inputRedacted');
}

// Everything that waits, page by page.
const waiting = [];
let pages = 0;
for (let cursor = null; ; ) {
  const page = await ok(`/approvals?state=pending&limit=2${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { token: readKey });
  check(Object.keys(page).sort().join() === 'data,nextCursor', `a page holds ${Object.keys(page)}`);
  pages += 1;
  for (const approval of page.data) {
    shaped(approval);
    check(approval.decision === null, 'what waits has a decision');
    waiting.push(approval);
  }
  cursor = page.nextCursor;
  if (cursor === null) break;
}
check(new Set(waiting.map((approval) => approval.id)).size === waiting.length, 'a page repeats');

// Answers: to the good addresses yes, to others no.
const decided = {};
for (const approval of waiting) {
  const one = await ok(`/approvals/${approval.id}`, { token: readKey });
  check(JSON.stringify(one) === JSON.stringify(approval), 'one approval reads differently alone');
  await refused(403, 'forbidden', `/approvals/${approval.id}/decide`, { method: 'POST', token: readKey, body: { decision: 'approved' } });
  for (const body of [{ decision: 'always' }, { decision: 'approved', scope: 'lifetime' }, {}]) {
    await refused(422, 'invalid_request', `/approvals/${approval.id}/decide`, { method: 'POST', body });
  }
  const decision = approval.inputRedacted.to.endsWith('@good.example') ? 'approved' : 'denied';
  const body = decision === 'denied' ? { decision, reason: 'I do not know this address.' } : { decision };
  const answer = await ok(`/approvals/${approval.id}/decide`, { method: 'POST', body });
  shaped(answer);
  check(answer.decision === decision && answer.id === approval.id, `the answer is ${JSON.stringify(answer)}`);
  check((await ok(`/approvals/${approval.id}/decide`, { method: 'POST', body })).decision === decision, 'the same answer again');
  await refused(409, 'conflict', `/approvals/${approval.id}/decide`, { method: 'POST', body: { decision: decision === 'approved' ? 'denied' : 'approved' } });
  decided[approval.inputRedacted.to] = decision;
}

// Errors.
await refused(401, 'unauthorized', '/approvals', { token: null });
await refused(401, 'unauthorized', '/approvals', { token: 'obt_no-such-key-no-such-key' });
await refused(404, 'not_found', '/approvals/00000000-0000-7000-8000-000000000000');
await refused(404, 'not_found', '/approvals/nothing');
await refused(422, 'invalid_request', '/approvals?state=approved');

console.log(JSON.stringify({ pages, decided, inputs: waiting.map((approval) => approval.inputRedacted), tools: [...new Set(waiting.map((approval) => approval.toolName))] }));
