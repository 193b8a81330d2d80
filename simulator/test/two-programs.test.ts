/**
 * The behaviour that other programs rely on: two such programs, with Baileys' default options, use the stand-alone simulator.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { Agent, request } from 'node:https'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Program } from './program.ts'
import { until } from './wait.ts'

const CLI = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const agent = new Agent({ rejectUnauthorized: false })

function post(url: string, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method: 'POST', agent }, response => {
      response.resume().on('end', () => resolve(response.statusCode))
    })
    call.on('error', reject).end(body)
  })
}

let simulator: ChildProcess
let ana: Program
let rui: Program

beforeAll(async () => {
  // libsignal prints whole sessions.
  vi.spyOn(console, 'info').mockImplementation(() => undefined)
  simulator = spawn('node', [CLI, '--port', '0', '--tls'], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  simulator.stdout!.on('data', chunk => (printed += chunk))
  const [url] = await until(() => /wss:\S+/.exec(printed), 'the line with the URL')
  const scan = url.replace('wss:', 'https:').replace('/ws/chat', '/admin/mock-phone/scan-qr')
  const [first, second] = [new Program(url, agent), new Program(url, agent)]
  ana = first
  rui = second
  for (const [program, query] of [
    [ana, 'name=Ana'],
    [rui, 'name=Rui&phone=5511900000042'],
  ] as const) {
    await until(() => program.qr !== '', 'a QR code')
    expect(await post(`${scan}?${query}`, program.qr)).toBe(200)
    await until(() => program.isOpen)
  }
})

afterAll(async () => {
  for (const program of [ana, rui]) await program.sock.end(undefined)
  simulator.kill('SIGKILL')
})

describe('two programs with the default options of Baileys, over wss:', () => {
  it('exchange texts with push names, and receive delivery receipts', async () => {
    const sent = await ana.sock.sendMessage(rui.jid, { text: 'hello' })
    const message = await rui.received(
      one => one.message?.conversation ?? one.message?.extendedTextMessage?.text,
      'hello',
    )
    expect(message.pushName).toBe('Ana')
    expect(message.key).toMatchObject({ id: sent?.key.id, remoteJid: ana.lid, remoteJidAlt: ana.jid, fromMe: false })
    await rui.sock.readMessages([message.key])
    await rui.sock.sendMessage(message.key.remoteJid!, { text: 'and hello to you' }, { quoted: message })
    const answer = await ana.received(one => one.message?.extendedTextMessage?.contextInfo?.quotedMessage, 'the answer')
    expect(answer.pushName).toBe('Rui')
    await until(() =>
      ana
        .all('messages.update')
        .flat()
        .some(({ key, update }) => key.id === sent?.key.id && (update.status ?? 0) >= 3),
    )
  })

  it('edit, react, remove the reaction, and delete for everyone', async () => {
    const sent = (await ana.sock.sendMessage(rui.jid, { text: 'frist' }))!
    const there = await rui.received(({ key }) => key.id === sent.key.id, 'the text')
    await ana.sock.sendMessage(rui.jid, { text: 'first', edit: sent.key })
    const updates = () =>
      rui
        .all('messages.update')
        .flat()
        .filter(({ key }) => key.id === sent.key.id)
    await until(
      () => updates().some(({ update }) => JSON.stringify(update.message?.editedMessage)?.includes('first')),
      'the edit',
    )
    for (const text of ['👍', '']) {
      await rui.sock.sendMessage(there.key.remoteJid!, { react: { text, key: there.key } })
      await until(
        () =>
          ana
            .all('messages.reaction')
            .flat()
            .some(({ key, reaction }) => key.id === sent.key.id && (reaction.text ?? '') === text),
        `the reaction ${text}`,
      )
    }
    await ana.sock.sendMessage(rui.jid, { delete: sent.key })
    await until(() => updates().some(({ update }) => update.message === null), 'the deletion')
  })

  it('forward, and send contact cards and polls', async () => {
    const sent = (await ana.sock.sendMessage(rui.jid, { text: 'pass it on' }))!
    const there = await rui.received(({ key }) => key.id === sent.key.id, 'the text')
    await rui.sock.sendMessage(ana.jid, { forward: there, force: true })
    await ana.received(({ message }) => message?.extendedTextMessage?.contextInfo?.isForwarded, 'it, forwarded')
    const vcard = 'BEGIN:VCARD\nVERSION:3.0\nFN:Zé\nTEL;waid=5511900000001:+55 11 90000 0001\nEND:VCARD'
    await ana.sock.sendMessage(rui.jid, { contacts: { displayName: 'Zé', contacts: [{ vcard }] } })
    expect(
      (await rui.received(({ message }) => message?.contactMessage, 'the card')).message?.contactMessage,
    ).toMatchObject({ vcard })
    await ana.sock.sendMessage(rui.jid, { poll: { name: 'Lunch?', values: ['yes', 'no'], selectableCount: 1 } })
    const { message } = await rui.received(one => one.message?.pollCreationMessageV3, 'the poll')
    expect(message?.pollCreationMessageV3).toMatchObject({
      name: 'Lunch?',
      options: [{ optionName: 'yes' }, { optionName: 'no' }],
    })
  })

  it('create a group, write in it, add, promote, demote and remove members, and see every change', async () => {
    const contact = '5511999990001@s.whatsapp.net'
    const { id } = await ana.sock.groupCreate('Lunch', [rui.jid])
    await until(
      () =>
        rui
          .all('groups.upsert')
          .flat()
          .some(group => group.id === id && group.subject === 'Lunch'),
      'the group',
    )
    await ana.sock.sendMessage(id, { text: 'to all' })
    const written = await rui.received(
      ({ key, message }) => key.remoteJid === id && key.participant === ana.lid && message?.extendedTextMessage,
      'the text',
    )
    expect(written.pushName).toBe('Ana')
    await rui.sock.sendMessage(id, { text: 'from rui' })
    await ana.received(
      ({ key, message }) => key.remoteJid === id && message?.extendedTextMessage?.text === 'from rui',
      'his',
    )

    const seesChange = (action: string, program: Program) =>
      until(
        () => program.all('group-participants.update').some(update => update.id === id && update.action === action),
        action,
      )
    const roles = async (program: Program) => {
      const { participants } = await program.sock.groupMetadata(id)
      return Object.fromEntries(participants.map(({ phoneNumber, admin }) => [phoneNumber, admin ?? null]))
    }
    await expect(rui.sock.groupParticipantsUpdate(id, [contact], 'add')).rejects.toThrow('forbidden')
    expect(await ana.sock.groupParticipantsUpdate(id, [contact], 'add')).toMatchObject([{ status: '200' }])
    await seesChange('add', rui)
    expect(await roles(rui)).toEqual({ [ana.jid]: 'superadmin', [rui.jid]: null, [contact]: null })
    for (const [action, role] of [
      ['promote', 'admin'],
      ['demote', null],
    ] as const) {
      await ana.sock.groupParticipantsUpdate(id, [rui.jid], action)
      await seesChange(action, rui)
      await seesChange(action, ana)
      expect(await roles(rui)).toMatchObject({ [rui.jid]: role })
    }
    await ana.sock.groupParticipantsUpdate(id, [contact], 'remove')
    await seesChange('remove', rui)
    expect(Object.keys(await roles(ana))).toEqual([ana.jid, rui.jid])
    expect(Object.keys(await rui.sock.groupFetchAllParticipating())).toEqual([id])
    await ana.sock.groupParticipantsUpdate(id, [rui.jid], 'remove')
    await expect(rui.sock.groupMetadata(id)).rejects.toThrow()
    expect(await rui.sock.groupFetchAllParticipating()).toEqual({})
  })

  it('were disconnected once, to log in as linked clients, and logged no other error', () => {
    for (const { closes, complaints } of [ana, rui]) {
      expect({ closes, complaints }).toEqual({ closes: [515], complaints: ['stream errored out'] })
    }
  })
})
