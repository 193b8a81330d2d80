import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { PassThrough } from 'node:stream'
import { promisify, stripVTControlCharacters } from 'node:util'
import { create } from 'qrcode'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Findings } from '../../scripts/live-check/findings.ts'
import { createTerminalOperator } from '../../scripts/live-check/operator.ts'
import { programFor } from '../../scripts/live-check/passkey-program.ts'
import { checkRedacted, compare } from '../../scripts/live-check/report.ts'
import { shapeOf } from '../../scripts/live-check/shape.ts'
import { checkSimulator } from '../../scripts/live-check/simulated.ts'
import { drawQr } from '../../scripts/live-check/terminal-qr.ts'
import type { PasskeyRequest } from '../../src/domain/connection/passkey.ts'
import { TestPasskey } from '../passkey.ts'
import { until } from '../until.ts'

const PROGRAM = join(import.meta.dirname, '../../scripts/live-check.ts')
const silent = () => ({ say: () => undefined, secrets: new Set<string>(), passkey: false })

const passkey = new TestPasskey()
const request: PasskeyRequest = {
  challenge: 'AAAA',
  rpId: 'whatsapp.com',
  allowCredentials: [],
  userVerification: 'required',
}

describe.concurrent('the live check', () => {
  test('with --passkey links the number with its passkey, and its report contains no part of the passkey', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pombal-live-report-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    await promisify(execFile)(process.execPath, [PROGRAM, '--dry-run', '--passkey', '--report', folder])
    const [json = ''] = readdirSync(folder).sort()
    const text = readFileSync(join(folder, json), 'utf8')
    const report = JSON.parse(text)
    expect(report).toMatchObject({ mode: 'dry-run', complete: true, differences: [] })
    const facts = report.same.map(({ check, fact, seen }: Record<string, string>) => `${check}: ${fact}: ${seen}`)
    expect(facts).toContain('Passkey: WhatsApp asks for it: yes')
    expect(facts).toContain('Passkey: answers: 1')
    expect(facts).toContain('Passkey: a code is compared: no')
    expect(facts).toContain('Linking: connected: yes')
    expect(text).not.toMatch(/clientDataJSON|authenticatorData|signature|[\w-]{40}/)
  })

  test('with --passkey reports a network that asks differently', async () => {
    const usual = checkSimulator({ ...silent(), passkey: true })
    const changed = checkSimulator({ ...silent(), passkey: true }, simulator =>
      simulator.misbehave({ kind: 'play_passkey', how: 'refused', count: 1 }),
    )
    const { differences } = compare(...(await Promise.all([usual, changed])))
    const told = differences.map(({ check, fact, whatsapp }) => `${check}: ${fact}: ${whatsapp}`)
    expect(told).toEqual(['Passkey: answers: 2', 'Passkey: a code is compared: yes'])
  })

  test('as a dry run finds no difference, and its report contains no number, key or text', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pombal-live-report-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    await promisify(execFile)(process.execPath, [PROGRAM, '--dry-run', '--report', folder])
    const files = readdirSync(folder).sort()
    expect(files).toEqual([expect.stringMatching(/\.json$/), expect.stringMatching(/\.txt$/)])
    const [json, text] = files.map(file => readFileSync(join(folder, file), 'utf8')) as [string, string]
    const report = JSON.parse(json)
    expect(report).toMatchObject({ mode: 'dry-run', complete: true, differences: [] })
    const facts = report.same.map(({ check, fact, seen }: Record<string, string>) => `${check}: ${fact}: ${seen}`)
    expect(facts).toContain('The same id once more: times it shows on the phone: 1')
    expect(facts).toContain('A message to us: the sender is known by: number')
    expect(facts).toContain('A message while we were away: times it was reported: 1')
    expect(facts).toContain('Logging out: ends in: logged_out')
    for (const written of [json, text])
      expect(written).not.toMatch(/\d{6}|[0-9A-F]{16}|@s\.whatsapp|Pombal live check:/)
  })

  test('reports every difference of a network', async () => {
    const usual = checkSimulator(silent())
    const changed = checkSimulator(silent(), async simulator => {
      const acks = { stanza: 'ack', direction: 'out', attrs: { class: 'message' } } as const
      await simulator.misbehave({ kind: 'rule', rule: { when: { ...acks, times: 1 }, do: { error: '463' } } })
      const messages = { stanza: 'message', direction: 'out' } as const
      await simulator.misbehave({ kind: 'rule', rule: { when: messages, do: { address: 'pn' } } })
    })
    const { differences } = compare(...(await Promise.all([usual, changed])))
    const told = differences.map(({ check, fact, whatsapp }) => `${check}: ${fact}: ${whatsapp}`)
    expect(told).toContain('A text to itself: acknowledged: error 463')
    expect(told).toContainEqual(expect.stringMatching(/^A message to us: stanza: .*from=number .*sender_lid=LID/))
    expect(told.filter(line => line.startsWith('The same id once more'))).toEqual([])
  })
})

test('the prompt repeats until the answer is a number, and ends when the check is stopped', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  let asked = ''
  const said: string[] = []
  output.setEncoding('utf8').on('data', text => {
    asked += text
  })
  const stopped = new AbortController()
  const terminal = createInterface({ input, output })
  onTestFinished(() => terminal.close())
  const operator = createTerminalOperator(
    terminal,
    text => void said.push(text),
    { second: '5511987654321' },
    stopped.signal,
  )
  const counted = operator.countShown('7F00AB')
  await until('the question', () => asked.includes('7F00AB'))
  input.write('twice\n')
  await until('the question again', () => asked.split('7F00AB').length === 3)
  input.write(' 2 \n')
  expect(await counted).toBe(2)
  const answered = operator.passkey(request)
  await until('the question for the answer', () => asked.includes('Paste the answer here'))
  expect(said).toContain(programFor(request))
  input.write('{}\n')
  await until('the question again', () => asked.split('Paste the answer here').length === 3)
  const assertion = passkey.answer(request)
  input.write(`${JSON.stringify(assertion)}\n`)
  expect(await answered).toEqual(assertion)
  const compared = operator.isSameCode('7KQ2M9XA')
  await until('the code', () => asked.includes('7KQ2-M9XA'))
  input.write('perhaps\n')
  await until('the code again', () => asked.split('7KQ2-M9XA').length === 3)
  input.write('no\n')
  expect(await compared).toBe(false)
  const read = operator.read()
  await until('what to do', () => asked.includes('On the second phone (5511987654321), open the chat'))
  stopped.abort()
  await expect(read).rejects.toThrow()
})

test('the QR code in the terminal encodes the given text and has a light margin', () => {
  const text = 'https://wa.me/settings/linked_devices#2@ref,key,identity,secret,1'
  const { modules } = create(text, { errorCorrectionLevel: 'L' })
  const lines = stripVTControlCharacters(drawQr(text)).split('\n')
  const light = lines.flatMap(line => [
    [...line].map(half => half === '█' || half === '▀'),
    [...line].map(half => half === '█' || half === '▄'),
  ])
  for (let row = -4; row < modules.size + 4; row += 1) {
    for (let column = -4; column < modules.size + 4; column += 1) {
      const inside = row >= 0 && column >= 0 && row < modules.size && column < modules.size
      expect(light[row + 4]?.[column + 4]).toBe(!(inside && modules.get(row, column)))
    }
  }
})

test('a reported stanza contains no private data', () => {
  const shape = shapeOf({
    tag: 'message',
    attrs: { from: '5511987654321:7@s.whatsapp.net', id: '3EB0', t: '1795256000', notify: 'Ana', type: 'text' },
    content: [{ tag: 'enc', attrs: { v: '2', type: '5511987654321' }, content: Buffer.from('secret') }],
  })
  expect(shape).toBe(
    '<message from=number:device id=(text) notify=(text) t=(number) type=text>{<enc type=(number) v=2>}',
  )
})

test('checks that were not reached are not reported as differences, and a report with a secret is refused', () => {
  const [simulator, whatsapp] = [new Findings(), new Findings()]
  for (const check of ['first', 'second']) simulator.note(check, 'acknowledged', true)
  whatsapp.note('first', 'acknowledged', false)
  whatsapp.note('first', 'surprise', 'yes')
  expect(compare(simulator, whatsapp).differences).toEqual([
    { check: 'first', fact: 'acknowledged', simulator: 'yes', whatsapp: 'no' },
    { check: 'first', fact: 'surprise', simulator: '(not seen)', whatsapp: 'yes' },
  ])
  expect(() => checkRedacted('… 5511987654321 …', ['5511987654321'])).toThrow('private')
})
