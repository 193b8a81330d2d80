import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { StoreUnavailable } from '../../../src/store/errors.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { until } from '../../until.ts'
import { ADMIN_KEY, ApiHarness } from '../api/harness.ts'
import { createPerson } from '../api/people/people.ts'
import { MediaClient, sha256 } from '../media/harness.ts'
import { newContact, sendFrom, untilSettled } from '../media/receiving-harness.ts'
import { sampleFile } from '../media/sample-files.ts'

const GROUP = '120363000000000077@g.us'

interface Line {
  id: string
  direction: 'in' | 'out' | 'command'
  text: string | null
  media?: { id: string }
}

interface FileLine {
  id: string
  messageId: string
  path: string | null
  problem: string | null
}

/** The files in a zip file, by their names. */
async function unzip(bytes: Buffer): Promise<Map<string, Buffer>> {
  const zip = await fromBufferPromise(bytes)
  const files = new Map<string, Buffer>()
  for await (const entry of zip.eachEntry())
    files.set(entry.fileName, await buffer(await zip.openReadStreamPromise(entry)))
  return files
}

function linesOf<T>(files: Map<string, Buffer>, name: string): T[] {
  const text = files.get(name)!.toString()
  return text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line)]))
}

describe.each(ONE_STORE)('the export of a contact, on %s', store => {
  let harness: LinkedHarness
  let number: LinkedNumber
  let folder: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-export-'))
    harness = await LinkedHarness.open(store, { env: { MEDIA_URL: pathToFileURL(folder).href } })
    number = await harness.link()
  })
  afterAll(async () => {
    await harness?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const call = (path: string, method = 'GET', key = harness.service.adminKey) =>
    fetch(`${harness.service.url}/admin/v1/instances/${number.id}/contacts/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
    })
  async function exportOf(contact: string): Promise<Map<string, Buffer>> {
    const response = await call(`${contact}/export`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/zip'])
    return unzip(Buffer.from(await response.arrayBuffer()))
  }

  test('has messages in both directions, groups, events, the name and files, and nothing of others', async () => {
    const [contact, other] = [newContact(), newContact()]
    const sent = await number.instance.send(contact, 'SENT-WORD')
    const picture = sampleFile('image', 300_000).bytes
    const own = await number.instance.sendFile(contact, picture)
    const photo = await sendFrom(harness, number, contact, 'image', { caption: 'PHOTO-WORD', size: 2_000_000 })
    const paper = await sendFrom(harness, number, contact, 'document', { filename: 'a/../b.pdf' })
    for (const { id } of [photo, paper]) await untilSettled(harness, number, id)
    await harness.network.writeAs({ from: contact, to: number.phone, text: 'HEARD-WORD', name: 'Their Name' })
    await harness.network.writeAs({ from: other, to: number.phone, text: 'OTHER-WORD', name: 'Another' })
    await harness.network.writeAs({ from: contact, to: number.phone, group: GROUP, text: 'GROUP-WORD' })
    await harness.network.writeAs({ from: other, to: number.phone, group: GROUP, text: 'OTHER-GROUP-WORD' })
    await number.instance.send(other, 'OTHER-SENT-WORD')
    await harness.receiver.waitFor(15)
    for (const { id } of [sent, own])
      await until(`${id} to be read`, async () => (await number.instance.message(id)).status === 'read')

    const files = await exportOf(contact)
    const everything = [...files].map(([name, bytes]) => (name.startsWith('files/') ? '' : bytes.toString())).join('\n')
    for (const word of ['SENT-WORD', 'PHOTO-WORD', 'HEARD-WORD', 'GROUP-WORD', 'Their Name'])
      expect(everything).toContain(word)
    expect(everything).not.toMatch(new RegExp(`OTHER-|Another|${other}`))
    const messages = linesOf<Line>(files, 'messages.jsonl')
    expect(messages.map(({ direction, text }) => [direction, text]).sort()).toEqual(
      [
        ['out', 'SENT-WORD'],
        ['out', ''],
        ['in', 'PHOTO-WORD'],
        ['in', null],
        ['in', 'HEARD-WORD'],
        ['in', 'GROUP-WORD'],
      ].sort(),
    )
    const events = linesOf<{ messageId: string; body: { event: string }; attempts: { status: number }[] }>(
      files,
      'events.jsonl',
    )
    const ofSent = events.filter(({ messageId }) => messageId === sent.id)
    expect(ofSent.map(({ body }) => body.event)).toEqual(['message.sent', 'message.delivered', 'message.read'])
    expect(ofSent[0]!.attempts).toMatchObject([{ status: 200 }])
    const known = new Set(messages.map(({ id }) => id))
    expect(events.filter(({ messageId }) => !known.has(messageId))).toEqual([])
    const listed = linesOf<FileLine>(files, 'files.jsonl')
    const hashes = listed.map(({ path }) => sha256(files.get(path!)!))
    expect(new Set(hashes)).toEqual(new Set([sha256(picture), photo.hash, paper.hash]))
    expect(listed.every(({ problem }) => problem === null)).toBe(true)
    expect([...files.keys()].filter(name => name.startsWith('files/'))).toHaveLength(3)
    expect(files.get('README.txt')!.toString()).toContain('messages.jsonl')
    const { lid } = JSON.parse(files.get('contact.json')!.toString()).contacts[0]

    // The export by the person's LID has the same messages.
    if (lid !== null) expect(linesOf(await exportOf(lid), 'messages.jsonl')).toEqual(messages)
    const audit = await fetch(`${harness.service.url}/admin/v1/audit?action=exportContact`, {
      headers: { authorization: `Bearer ${harness.service.adminKey}` },
    })
    const [record] = ((await audit.json()) as { data: { instanceId: string; details: object }[] }).data
    expect(record).toMatchObject({
      instanceId: number.id,
      details: { contact: `…${(lid ?? contact).replace('@lid', '').slice(-4)}` },
    })

    // The erasure removes the exported messages, except those that were just sent.
    await until('all events to be posted', async () => {
      const erased = (await (await call(contact, 'DELETE')).json()) as { data: { kept: number } }
      return erased.data.kept === 2
    })
    const left = await exportOf(contact)
    expect(
      linesOf<Line>(left, 'messages.jsonl')
        .map(({ id }) => id)
        .sort(),
    ).toEqual([own.id, sent.id].sort())
  })

  test('says which files it does not have, and contains the others', async () => {
    const contact = newContact()
    const [gone, damaged, kept] = [
      await sendFrom(harness, number, contact),
      await sendFrom(harness, number, contact, 'image', { size: 400_000 }),
      await sendFrom(harness, number, contact),
    ]
    const ids: string[] = []
    for (const { id } of [gone, damaged, kept]) ids.push((await untilSettled(harness, number, id))[0]!.data.media.id)
    const media = new MediaClient(harness.service.url!, number.instance)
    expect((await media.call('DELETE', ids[0]!)).status).toBe(204)
    const paths = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    for (const { parentPath, name } of paths) {
      const path = join(parentPath, name)
      // The erased file may be removed at any moment.
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
      if (size < 400_000 || size > 410_000) continue
      const bytes = readFileSync(path)
      bytes[bytes.length - 100]! ^= 1
      writeFileSync(path, bytes)
    }
    const files = await exportOf(contact)
    const listed = new Map(linesOf<FileLine>(files, 'files.jsonl').map(line => [line.id, line]))
    expect(listed.get(ids[0]!)).toMatchObject({ path: null, problem: 'The file was erased on request.' })
    expect(listed.get(ids[1]!)!.problem).toMatch(/^Only its beginning is here\. .*damaged/)
    expect(sha256(files.get(listed.get(ids[2]!)!.path!)!)).toBe(kept.hash)
  })

  test('refuses a wrong key, an address that is not a person, and an unknown instance', async () => {
    const codeOf = async (response: Response) => ((await response.json()) as { error: { code: string } }).error.code
    expect(await codeOf(await call(`${GROUP}/export`))).toBe('invalid_request')
    expect(await codeOf(await call('0123456/export'))).toBe('invalid_request')
    expect((await call(`${newContact()}/export`, 'GET', 'wrong')).status).toBe(401)
    const unknown = `${harness.service.url}/admin/v1/instances/inst_000000000000/contacts/${newContact()}/export`
    const response = await fetch(unknown, { headers: { authorization: `Bearer ${harness.service.adminKey}` } })
    expect(await codeOf(response)).toBe('instance_not_found')
    // A person without messages has an export too.
    expect(linesOf(await exportOf(newContact()), 'messages.jsonl')).toEqual([])
  })
})

test('exports whose audit record cannot be written do not keep later ones from running', async () => {
  let isDown = false
  await using api = await ApiHarness.start({
    store: ({ audit }) => ({
      audit: new Proxy(audit, {
        get(target, name: keyof typeof audit) {
          if (name !== 'finish') return target[name].bind(target)
          return async (...args: Parameters<typeof audit.finish>) => {
            if (isDown) throw new StoreUnavailable('The disk is full.')
            return target.finish(...args)
          }
        },
      }),
    }),
  })
  const { id } = await api.createInstance()
  const path = `/admin/v1/instances/${id}/contacts/${newContact()}/export`
  const statusOf = async () => {
    const answer = await fetch(api.url + path, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
    await answer.arrayBuffer()
    return answer.status
  }
  isDown = true
  for (let count = 0; count < 3; count += 1) expect(await statusOf()).toBe(503)
  isDown = false
  expect(await statusOf()).toBe(200)
})

test('an export breaks off when the account of its caller is removed', async () => {
  let onMessages = async () => {}
  await using api = await ApiHarness.start({
    store: ({ retention }) => ({
      retention: new Proxy(retention, {
        get(target, name: keyof typeof retention) {
          if (name !== 'openContact') return target[name].bind(target)
          return async (...args: Parameters<typeof retention.openContact>) => {
            const data = await target.openContact(...args)
            async function* messages() {
              await onMessages()
              yield* data.messages()
            }
            return { ...data, messages }
          }
        },
      }),
    }),
  })
  const { id } = await api.createInstance()
  const [owner, other] = [await createPerson(api, 'owner'), await createPerson(api, 'owner')]
  const read = async ({ headers }: typeof owner) =>
    (await fetch(`${api.url}/admin/v1/instances/${id}/contacts/${newContact()}/export`, { headers })).arrayBuffer()
  onMessages = async () => {
    await api.store.accounts.remove(owner.id)
    await setTimeout(1_100)
  }
  await expect(read(owner)).rejects.toThrow('terminated')
  expect((await read(other)).byteLength).toBeGreaterThan(0)
})
