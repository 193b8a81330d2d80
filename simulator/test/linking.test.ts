import { DEFAULT_CONNECTION_CONFIG } from 'baileys'
import { describe, expect, it } from 'vitest'
import { until } from './wait.ts'
import { jid, link, startClient, startSimulator } from './world.ts'

describe('linking by QR code', () => {
  it('goes through 515 to a login, and the client learns its number and LID', async () => {
    const simulator = await startSimulator()
    const { phone } = await simulator.openAccount('a')
    const client = await link(simulator, 'a')
    expect(client.seen.closes).toEqual([515])
    expect(client.state.creds.me).toMatchObject({
      id: `${phone}:1@s.whatsapp.net`,
      lid: expect.stringMatching(/^\d{15}:1@lid$/),
    })
    const version = DEFAULT_CONNECTION_CONFIG.version.join('.')
    expect(await simulator.listAccounts()).toEqual([{ key: 'a', phone, linked: true, online: true, version }])
  })

  it('refuses a QR code that is unknown or has expired', async () => {
    const simulator = await startSimulator()
    const client = startClient(simulator.url)
    const qr = await until(() => client.seen.qrs[0])
    await expect(simulator.scanQr('nonsense')).rejects.toMatchObject({ code: 'unknown_qr' })
    await expect(simulator.scanQr(qr.replace(/,[^,]+,/, ',AAAA,'))).rejects.toMatchObject({ code: 'unknown_qr' })
    client.stop()
    const scan = () =>
      simulator.scanQr(qr).then(
        () => null,
        (error: { code: string }) => error.code,
      )
    await until(async () => (await scan()) === 'unknown_qr')
  })

  it('lets only one of two phones that scan the same QR code link the client', async () => {
    const simulator = await startSimulator()
    const client = startClient(simulator.url)
    const qr = await until(() => client.seen.qrs[0])
    const scans = await Promise.allSettled([simulator.scanQr(qr, 'a'), simulator.scanQr(qr, 'b')])
    expect(scans.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await until(() => client.isOpen)
  })

  it('replaces the previous client, which is notified that it was removed', async () => {
    const simulator = await startSimulator()
    const first = await link(simulator, 'a')
    const second = await link(simulator, 'a')
    await until(() => first.seen.closes.includes(401))
    expect(second.state.creds.me?.id).toBe(`${first.phone}:2@s.whatsapp.net`)
    await simulator.writeAs({ from: '5511999990000', to: second.phone, text: 'to the second' })
    await until(() => second.texts().includes('to the second'))
    expect(first.texts()).toEqual([])
  })

  it('uploads real one-time keys, and contacts use them up', async () => {
    const simulator = await startSimulator({ claimedPreKeys: 0 })
    const client = await link(simulator, 'a')
    const oneTimeKeys = () => [...client.state.keys.keys()].filter(key => key.startsWith('pre-key/')).length
    const uploaded = oneTimeKeys()
    expect(uploaded).toBeGreaterThanOrEqual(800)
    for (const from of ['5511999990001', '5511999990002', '5511999990003']) {
      await simulator.writeAs({ from, to: client.phone, text: `from ${from}` })
      await until(() => client.texts().includes(`from ${from}`))
    }
    expect(oneTimeKeys()).toBe(uploaded - 3)
  })
})

describe('linking by code', () => {
  it('links the client that shows the code', async () => {
    const simulator = await startSimulator()
    const { phone } = await simulator.openAccount('a')
    const client = startClient(simulator.url)
    await until(() => client.seen.qrs[0])
    const code = await client.sock.requestPairingCode(phone)
    expect(code).toHaveLength(8)
    expect(await simulator.enterPairingCode(`${code.slice(0, 4)}-${code.slice(4)}`.toLowerCase(), phone)).toEqual({
      phone,
    })
    await until(() => client.isOpen)
    expect(client.state.creds.me?.id).toBe(`${phone}:1@s.whatsapp.net`)
    await simulator.writeAs({ from: '5511999990001', to: phone, text: 'hello' })
    await until(() => client.texts().includes('hello'))
  })

  it('links each of the clients that show a code for one number, to the phone that enters it', async () => {
    const simulator = await startSimulator()
    const number = '5511912345678'
    const clients = await Promise.all(
      ['a', 'b'].map(async account => {
        const client = startClient(simulator.url)
        const qr = await until(() => client.seen.qrs[0])
        return { client, account, qr, code: await client.sock.requestPairingCode(number) }
      }),
    )
    for (const { client, account, qr, code } of clients) {
      const { phone } = await simulator.enterPairingCode(code, number, { account, qr })
      await until(() => client.isOpen)
      expect(client.state.creds.me?.id).toBe(`${phone}:1@s.whatsapp.net`)
    }
    const { client, code, account, qr } = { ...clients[0]!, qr: 'nonsense' }
    await expect(simulator.enterPairingCode(code, number, { account, qr })).rejects.toMatchObject({
      code: 'unknown_qr',
    })
    expect(client.isOpen).toBe(true)
  })

  it('refuses a wrong code, and a number that no client asks for', async () => {
    const simulator = await startSimulator()
    const { phone } = await simulator.openAccount('a')
    const client = startClient(simulator.url)
    await until(() => client.seen.qrs[0])
    await client.sock.requestPairingCode(phone, 'ABCD1234')
    await expect(simulator.enterPairingCode('ABCD1235', phone)).rejects.toMatchObject({ code: 'unknown_pairing_code' })
    await expect(simulator.enterPairingCode('ABCD1234', '5511999990009')).rejects.toMatchObject({
      code: 'unknown_pairing_code',
    })
    expect(await simulator.listAccounts()).toMatchObject([{ linked: false }])
  })
})

describe('logging in', () => {
  it('accepts a known client again', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    client.stop()
    await until(async () => !(await simulator.listAccounts())[0]!.online)
    client.reconnect()
    await until(() => client.isOpen)
  })

  it('closes the first of two logins of one client', async () => {
    const simulator = await startSimulator()
    const first = await link(simulator, 'a')
    const second = startClient(simulator.url, first.state)
    await until(() => second.isOpen)
    await until(() => first.seen.closes.includes(440))
    await simulator.writeAs({ from: '5511999990001', to: first.phone, text: 'only to the second' })
    await until(() => second.texts().includes('only to the second'))
    expect(first.texts()).toEqual([])
  })

  it('answers 401 to a client that was unlinked while away or whose account was removed, and unlinks one that logs out', async () => {
    const simulator = await startSimulator()
    const unlinked = await link(simulator, 'a')
    unlinked.stop()
    await simulator.unlink(unlinked.phone)
    unlinked.reconnect()
    await until(() => unlinked.seen.closes.at(-1) === 401)

    const removed = await link(simulator, 'b')
    await simulator.removeAccount('b')
    await until(() => removed.seen.closes.at(-1) === 401)
    expect((await simulator.listAccounts()).map(({ key }) => key)).toEqual(['a'])

    const loggedOut = await link(simulator, 'c')
    await loggedOut.sock.logout()
    await until(async () => (await simulator.listAccounts()).every(({ linked }) => !linked))
  })

  it('notifies a client at once that its phone has removed it', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    await simulator.unlink(client.phone)
    await until(() => client.seen.closes.includes(401))
    await expect(client.send(jid('5511999990001'), 'too late')).rejects.toBeDefined()
  })
})

describe('numbers of accounts', () => {
  it('are derived from the key, never change, and never have a special behaviour', async () => {
    const simulator = await startSimulator()
    const { phone } = await simulator.openAccount('inst_abc')
    expect(phone).toMatch(/^888\d{11}$/)
    expect(await (await startSimulator()).openAccount('inst_abc')).toEqual({ phone })
    expect(await simulator.openAccount('5511987654321')).toEqual({ phone: '5511987654321' })
    await expect(simulator.openAccount('15005550002')).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(simulator.openAccount('')).rejects.toMatchObject({ code: 'invalid_argument' })
  })
})
