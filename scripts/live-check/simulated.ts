import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSimulator, type Simulator } from '@pombal/simulator'
import { TestPasskey } from '../../test/passkey.ts'
import { Account } from './account.ts'
import { type CheckOptions, runChecks } from './checks.ts'
import { Findings } from './findings.ts'
import type { Operator } from './operator.ts'

const SECOND = '5511987654321'
const KEY = 'live-check'
/** Simulated phones read after 600 ms. */
const QUIET_MS = 1_000

/** Runs the same checks on the simulator. `prepare` may change its behaviour. */
export async function checkSimulator(
  options: Pick<CheckOptions, 'say' | 'secrets' | 'passkey'>,
  prepare: (simulator: Simulator) => Promise<unknown> = async () => undefined,
): Promise<Findings> {
  const dataDir = mkdtempSync(join(tmpdir(), 'pombal-live-check-'))
  const simulator = await createSimulator()
  try {
    await prepare(simulator)
    const { phone } = await simulator.openAccount(KEY)
    const passkey = new TestPasskey()
    if (options.passkey) {
      await simulator.misbehave({ kind: 'require_passkey', account: phone, credential: passkey.credential })
    }
    const network = { kind: 'simulated', url: simulator.url } as const
    const account = await Account.open({ dataDir, network, passkeys: options.passkey })
    const findings = new Findings()
    const operator = createSimulatedOperator(simulator, phone, passkey)
    try {
      await runChecks({ ...options, account, operator, second: SECOND, findings, quietMs: QUIET_MS })
      return findings
    } finally {
      await account.close()
    }
  } finally {
    await simulator.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function createSimulatedOperator(simulator: Simulator, phone: string, passkey: TestPasskey): Operator {
  return {
    // Answered when the number is linked, which may need the passkey first.
    scan: async qr => void simulator.scanQr(qr, KEY).catch(() => undefined),
    passkey: async request => passkey.answer(request),
    isSameCode: async code =>
      (await simulator.misbehave({ kind: 'passkey_code', account: phone })).passkeyCode === code,
    // Simulated phones read by themselves.
    read: async () => undefined,
    countShown: async mark => (await simulator.inbox(SECOND)).filter(({ text }) => text.includes(mark)).length,
    write: async () => void (await simulator.writeAs({ from: SECOND, to: phone, text: 'a word' })),
  }
}
