import { readOptions } from '../../scripts/command-line.ts'
import { ATTACKS, type AttackName } from './attacks.ts'
import { AttackHarness } from './harness.ts'

/**
 * `npm run test:attacks -- pipelined-pages slow-sign-ins --seconds 10`: runs all attacks, or the named ones, each against
 * a new service, and prints what other callers observe meanwhile. It fails if a call of theirs is refused or delayed.
 */

const TIMEOUT_MS = 20_000
/** The limit on an idle machine. On a busy one, a call may take 20 times as long as without the attack. */
const P95_WITHIN_MS = 2_000

const { values, positionals } = readOptions(
  'usage: npm run test:attacks -- [NAME]… [--seconds 8]',
  {
    seconds: { type: 'string', default: '8' },
  },
  true,
)
const unknown = positionals.filter(name => !Object.hasOwn(ATTACKS, name))
if (unknown.length > 0) {
  console.error(`There is no attack ${unknown.join(', ')}. There are: ${Object.keys(ATTACKS).join(', ')}`)
  process.exit(2)
}
const names = (positionals.length > 0 ? positionals : Object.keys(ATTACKS)) as AttackName[]
const table: Record<string, object> = {}
let failed = false
for (const name of names) {
  const harness = await AttackHarness.start(TIMEOUT_MS)
  const { p95Ms: usualP95Ms } = await harness.measure(1_000)
  const { refused, ...figures } = await harness.under(name, Number(values.seconds) * 1_000)
  await harness.dispose()
  table[name] = { usualP95Ms, ...figures, refused: refused.length, example: refused[0]?.slice(0, 60) ?? '' }
  failed ||= refused.length > 0 || figures.p95Ms > Math.max(P95_WITHIN_MS, 20 * usualP95Ms)
  console.log(name, JSON.stringify(table[name]))
}
console.table(table)
process.exit(failed ? 1 : 0)
