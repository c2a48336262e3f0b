// Writes prices.json beside this file from the npm package @pydantic/genai-prices.
//
//   node model/prices/generate.mjs FOLDER
//
// FOLDER holds node_modules with that package; OPENBOT_NPM_DIR does as well. The
// same version of the package always gives the same file.

import { createRequire } from 'node:module'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const PACKAGE = '@pydantic/genai-prices'
const VERSION = '0.1.8'
// Prices that change on a day are taken as they stand on this one.
const DATE = '2026-09-23'

// What is billed by other things than text tokens, or is no chat model of the
// provider's own.
const OTHER = /audio|realtime|image|transcribe|tts|whisper|moderation|embedding|vision|computer-use|search-preview|deep-research|:|@|\.ft-|gpt-oss|^(ada|babbage|curie|davinci|text-)/
// What the providers no longer serve, and names that are but a beginning.
const GONE = /^(claude-2|claude-v1|claude-3-(haiku|opus|sonnet))|-20\d\d$|gpt-35|gpt-3\.5-(0301|turbo-(0301|0613|16k|instruct))|gpt-4-(0314|32k)|gpt-4\.5|o1-(mini|preview)/
const DATED = /-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$/

const folder = process.argv[2] ?? process.env.OPENBOT_NPM_DIR
if (!folder) {
  console.error(`name the folder whose node_modules holds ${PACKAGE}@${VERSION}`)
  process.exit(2)
}
const require = createRequire(join(resolve(folder), 'x.js'))
const { calcPrice, findProvider } = require(PACKAGE)
const installed = JSON.parse(readFileSync(join(resolve(folder), 'node_modules', PACKAGE, 'package.json'), 'utf8'))
if (installed.version !== VERSION) {
  console.error(`${PACKAGE} ${installed.version} is installed, ${VERSION} is meant; change VERSION and DATE in ${import.meta.url}`)
  process.exit(1)
}

const timestamp = new Date(`${DATE}T12:00:00Z`)

// USD for a million tokens is micro-USD for one, and a million pico-USD.
function pico(price) {
  if (price === undefined) return undefined
  const usd = typeof price === 'number' ? price : price.base
  const whole = Math.round(usd * 1e6)
  if (!Number.isSafeInteger(whole) || whole < 0 || Math.abs(whole - usd * 1e6) > 1e-6) {
    throw new Error(`not a whole number of pico-USD: ${JSON.stringify(price)}`)
  }
  return whole
}

function names(match) {
  if (match.or) return match.or.flatMap(names)
  return [match.equals ?? match.starts_with].filter(Boolean)
}

// The package's own reckoning decides what a name costs; the smallest usage falls
// below every tier.
function priceOf(providerId, name) {
  const found = calcPrice({ input_tokens: 1, output_tokens: 1 }, name, { providerId, timestamp })
  if (!found) return undefined
  const { input_mtok, cache_read_mtok, cache_write_mtok, output_mtok } = found.model_price
  if (input_mtok === undefined || output_mtok === undefined) return undefined
  return {
    input: pico(input_mtok),
    cachedInput: pico(cache_read_mtok),
    cacheWrite: pico(cache_write_mtok),
    output: pico(output_mtok),
  }
}

const providers = {}
for (const providerId of ['openai', 'anthropic']) {
  const all = findProvider({ providerId }).models.flatMap((model) => [model.id, ...names(model.match)])
  const undated = all.map((name) => name.replace(DATED, ''))
  const table = {}
  // Short names first, so that a dated one is kept only where its price differs.
  for (const name of [...new Set([...undated, ...all])].sort((a, b) => a.length - b.length || (a < b ? -1 : 1))) {
    if (OTHER.test(name) || GONE.test(name) || !/[a-z0-9]$/.test(name)) continue
    const price = priceOf(providerId, name)
    const known = table[name.replace(DATED, '')]
    if (price && JSON.stringify(known) !== JSON.stringify(price)) table[name] = price
  }
  providers[providerId] = Object.fromEntries(Object.entries(table).sort(([a], [b]) => (a < b ? -1 : 1)))
}

const lines = Object.entries(providers).map(([provider, table]) => {
  const rows = Object.entries(table).map(([name, price]) => `      ${JSON.stringify(name)}: ${JSON.stringify(price)}`)
  return `    ${JSON.stringify(provider)}: {\n${rows.join(',\n')}\n    }`
})
const head = {
  source: `npm package ${PACKAGE}`,
  version: VERSION,
  date: DATE,
  licence: 'MIT, Copyright (c) Pydantic Services Inc. 2025 to present',
  unit: 'pico-USD a token (1e-12 USD); base prices, without tiers',
}
const fields = Object.entries(head).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`)
writeFileSync(
  new URL('prices.json', import.meta.url),
  `{\n${fields.join(',\n')},\n  "providers": {\n${lines.join(',\n')}\n  }\n}\n`,
)
