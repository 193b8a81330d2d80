import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { StoreKind } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness } from '../../linked-harness.ts'
import { BareProgram } from '../../sessions/bare-program.ts'
import { runCommand } from '../../sessions/run-command.ts'
import { until } from '../../until.ts'

const CONTACT = '5511987654321'
const OTHER = '5511976543210'

/** A number that a bare program of Baileys has linked, and a service that does not know it yet. */
class Move implements AsyncDisposable {
  readonly harness: LinkedHarness
  readonly folder: string
  readonly old: BareProgram
  readonly phone: string

  private constructor(harness: LinkedHarness, folder: string, old: BareProgram, phone: string) {
    this.harness = harness
    this.folder = folder
    this.old = old
    this.phone = phone
  }

  static async begin(store: StoreKind): Promise<Move> {
    const harness = await LinkedHarness.open(store)
    const folder = mkdtempSync(join(tmpdir(), 'pombal-moved-'))
    const old = await new BareProgram(harness.network.url, join(folder, 'shop')).start()
    let phone = ''
    await old.link(async qr => {
      phone = (await harness.network.scanQr(qr)).phone
    })
    return new Move(harness, folder, old, phone)
  }

  /** What the contact's phone shows from the number. */
  async shown(contact = CONTACT): Promise<string[]> {
    const inbox = await this.harness.network.inbox(contact)
    return inbox.flatMap(({ from, text }) => (from === this.phone ? [text] : []))
  }

  async write(text: string): Promise<void> {
    await this.harness.network.writeAs({ from: CONTACT, to: this.phone, text })
  }

  /** Runs a command while the service is stopped. */
  async command(...args: string[]): Promise<string> {
    const { service, database } = this.harness
    await service.kill('SIGTERM')
    const { code, output } = await runCommand(args, { DATA_DIR: service.dataDir, ...database.env })
    await service.start()
    expect({ code, output }).toMatchObject({ code: 0 })
    return output
  }

  async import() {
    await this.command('import-sessions', '--stopped', this.folder)
    const { service, receiver } = this.harness
    const line = readFileSync(join(service.dataDir, 'imported-tokens.jsonl'), 'utf8').trim()
    const { instanceId, token } = JSON.parse(line) as { instanceId: string; token: string }
    const instance = service.instance(instanceId, token)
    await instance.setWebhook(receiver.url)
    return { id: instanceId, instance }
  }

  /** The texts of the posted events of received messages. */
  received(): unknown[] {
    const { events } = this.harness.receiver
    return events.flatMap(({ event, data }) => (event === 'message.received' ? [data['text']] : []))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.old.stop()
    await this.harness[Symbol.asyncDispose]()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

test.each(ONE_STORE)(
  'on %s, a number that Baileys has linked is taken over without a code, with the messages that waited, and handed back',
  async store => {
    await using move = await Move.begin(store)
    const { harness, old, phone, folder } = move
    await move.write('to the old program')
    await until('the old program to receive', () => old.texts.includes('to the old program'))
    await old.send(CONTACT, 'from the old program')
    await until('the contact to receive', async () => (await move.shown()).includes('from the old program'))
    await old.stop()
    await move.write('waiting')

    const { id, instance } = await move.import()
    const stopped = await harness.service.admin.connection(id)
    expect(stopped).toMatchObject({ state: 'stopped', cause: 'imported', phone })
    await harness.service.admin.connect(id)
    await harness.service.admin.untilState(id, 'connected')
    const codes = harness.service.logLines.filter(line => line['instanceId'] === id && line['state'] === 'linking')
    expect(codes).toEqual([])
    await until('what was waiting', () => move.received().includes('waiting'))
    for (const [to, text] of [
      [CONTACT, 'from Pombal'],
      [OTHER, 'to somebody new'],
    ] as const) {
      const { id: message } = await instance.send(to, text)
      await until(`${text} to be read`, async () => (await instance.message(message)).status === 'read')
      expect(await move.shown(to)).toContain(text)
    }
    expect(move.received().filter(text => text === 'waiting')).toHaveLength(1)

    const target = join(folder, 'exported')
    await move.command('export-session', id, target)
    expect(await harness.service.admin.connection(id)).toMatchObject({ state: 'stopped', cause: 'exported' })
    await expect(harness.service.admin.connect(id)).rejects.toMatchObject({ code: 'session_exported' })
    await move.write('after the export')
    const next = await new BareProgram(harness.network.url, target).start()
    try {
      await until('the next program to receive', () => next.texts.includes('after the export'))
      expect(next.qr).toBeNull()
      await harness.service.admin.logout(id)
      await harness.service.admin.untilState(id, 'logged_out')
      await next.send(CONTACT, 'from the next program')
      await until('the contact to receive', async () => (await move.shown()).includes('from the next program'))
      // Unlinking the exported number here has not reached WhatsApp.
      expect(next.closes).toEqual([])
    } finally {
      await next.stop()
    }
  },
  LONG_TEST_WITHIN_MS,
)

test('a program that still uses an imported session stops the instance, which says why', async () => {
  await using move = await Move.begin('sqlite')
  const { harness, old, folder } = move
  const { id } = await move.import()
  await harness.service.admin.connect(id)
  await harness.service.admin.untilState(id, 'connected')
  await until('the old program to be replaced', () => old.closes.includes(440))
  const again = await new BareProgram(harness.network.url, join(folder, 'shop')).start()
  try {
    const { cause } = await harness.service.admin.untilState(id, 'stopped')
    expect(cause).toBe('replaced')
  } finally {
    await again.stop()
  }
})
