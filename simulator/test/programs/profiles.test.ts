import type { Simulator } from '@pombal/simulator'
import { USyncQuery, USyncUser } from 'baileys'
import sharp from 'sharp'
import { beforeEach, expect, it } from 'vitest'
import { trust } from '../media/media-world.ts'
import { type Program, startNetwork, startProgram } from '../program.ts'
import { until } from '../wait.ts'

const [ANA, RUI] = ['5511900000001', '5511900000002'] as const
const CONTACT = '5511999990001'
const jid = (number: string) => `${number}@s.whatsapp.net`

let simulator: Simulator
let ana: Program
let rui: Program

beforeEach(async () => {
  simulator = await startNetwork()
  ana = await startProgram(simulator, ANA, 'Ana')
  rui = await startProgram(simulator, RUI, 'Rui')
})

async function meet(): Promise<void> {
  const { key } = (await ana.sock.sendMessage(rui.jid, { text: 'hello' }))!
  await rui.received(one => one.key.id === key.id, 'the text')
}

const picture = () =>
  sharp({ create: { width: 20, height: 20, channels: 3, background: 'red' } })
    .jpeg()
    .toBuffer()

it('a blocked contact and a blocked account reach neither the program nor its phone, until they are unblocked', async () => {
  await meet()
  for (const number of [CONTACT, RUI])
    await ana.sock.updateBlockStatus((await ana.sock.onWhatsApp(jid(number)))![0]!.jid, 'block')
  expect(await ana.sock.fetchBlocklist()).toEqual([expect.stringMatching(/@lid$/), rui.lid])
  await until(() => ana.all('blocklist.update').length === 2, 'the notifications')
  expect((await simulator.profile(ANA)).blocked).toEqual([CONTACT, RUI])
  await simulator.writeAs({ from: CONTACT, to: ANA, text: 'are you there?' })
  const blocked = (await rui.sock.sendMessage(ana.jid, { text: 'and there?' }))!
  for (const number of [CONTACT, RUI]) await ana.sock.updateBlockStatus(jid(number), 'unblock')
  expect(await ana.sock.fetchBlocklist()).toEqual([])
  await simulator.writeAs({ from: CONTACT, to: ANA, text: 'now' })
  await ana.received(({ message }) => message?.conversation === 'now', 'the text of the contact')
  const sent = (await rui.sock.sendMessage(ana.jid, { text: 'now too' }))!
  await ana.received(({ key }) => key.id === sent.key.id, "rui's text")
  expect((await simulator.inbox(ANA)).map(({ text }) => text)).toEqual(['now', 'now too'])
  expect(
    ana
      .all('messages.upsert')
      .flatMap(({ messages }) => messages)
      .map(({ key }) => key.id),
  ).not.toContain(blocked.key.id)
})

it('a picture is shown to others, until it is hidden or removed', async () => {
  await meet()
  await expect(rui.sock.profilePictureUrl(ana.jid)).rejects.toThrow('item-not-found')
  await ana.sock.updateProfilePicture(ana.jid, await picture())
  await until(() =>
    rui
      .all('contacts.update')
      .flat()
      .some(({ id, imgUrl }) => id === ana.lid && imgUrl === 'changed'),
  )
  const url = (await rui.sock.profilePictureUrl(ana.jid, 'image'))!
  expect(await ana.sock.profilePictureUrl(ana.jid, 'image')).toBe(url)
  trust(simulator.media)
  const { width, format } = await sharp(await (await fetch(url)).bytes()).metadata()
  expect({ width, format }).toEqual({ width: 640, format: 'jpeg' })
  await ana.sock.updateProfilePicturePrivacy('none')
  await expect(rui.sock.profilePictureUrl(ana.jid)).rejects.toThrow('not-authorized')
  await ana.sock.updateProfilePicturePrivacy('all')
  await ana.sock.removeProfilePicture(ana.jid)
  await until(() =>
    rui
      .all('contacts.update')
      .flat()
      .some(({ imgUrl }) => imgUrl === 'removed'),
  )
  await expect(rui.sock.profilePictureUrl(ana.jid)).rejects.toThrow('item-not-found')
})

it('a group has a picture, which members change unless the group is locked', async () => {
  const { id } = await ana.sock.groupCreate('Lunch', [rui.jid])
  await rui.sock.updateProfilePicture(id, await picture())
  await until(() =>
    ana
      .all('contacts.update')
      .flat()
      .some(one => one.id === id && one.imgUrl === 'changed'),
  )
  expect(await ana.sock.profilePictureUrl(id)).toMatch(/^https:/)
  await ana.sock.groupSettingUpdate(id, 'locked')
  await expect(rui.sock.removeProfilePicture(id)).rejects.toThrow('forbidden')
  await ana.sock.removeProfilePicture(id)
  await expect(rui.sock.profilePictureUrl(id)).rejects.toThrow('item-not-found')
})

it('texts, timers, privacy settings and usernames are kept, and found by look-ups', async () => {
  await ana.sock.updateProfileStatus('Busy')
  await ana.sock.updateDefaultDisappearingMode(86_400)
  expect(await rui.sock.fetchStatus(ana.jid)).toMatchObject([{ id: ana.jid, status: { status: 'Busy' } }])
  expect(await rui.sock.fetchDisappearingDuration(ana.jid)).toMatchObject([{ disappearing_mode: { duration: 86_400 } }])
  await until(() => ana.creds.accountSettings.defaultDisappearingMode?.ephemeralExpiration === 86_400, 'the timer')
  await ana.sock.updateStatusPrivacy('none')
  await ana.sock.updateReadReceiptsPrivacy('none')
  // WhatsApp knows this value, Baileys does not.
  await ana.sock.updateGroupsAddPrivacy('none' as 'all')
  expect(await ana.sock.fetchPrivacySettings(true)).toMatchObject({ status: 'none', readreceipts: 'none', last: 'all' })
  expect(await rui.sock.fetchStatus(ana.jid)).toMatchObject([{ status: { status: '' } }])
  const { id } = await rui.sock.groupCreate('Lunch', [jid(CONTACT)])
  expect(await rui.sock.groupParticipantsUpdate(id, [ana.jid], 'add')).toMatchObject([{ status: '403' }])
  expect(await rui.sock.getBusinessProfile(ana.jid)).toBeUndefined()
  // @ts-expect-error: WhatsApp knows no such value.
  await expect(ana.sock.updateOnlinePrivacy('nobody')).rejects.toThrow('bad-request')

  await simulator.setProfile({
    from: CONTACT,
    to: RUI,
    about: 'At work',
    username: 'carla.souza',
    picture: await picture(),
  })
  expect(await rui.sock.fetchStatus(jid(CONTACT))).toMatchObject([{ status: { status: 'At work' } }])
  expect(await rui.sock.profilePictureUrl(jid(CONTACT))).toBe((await simulator.profile(CONTACT, RUI)).picture?.url)
  const look = new USyncQuery().withContactProtocol().withLIDProtocol()
  const found = await rui.sock.executeUSyncQuery(look.withUser(new USyncUser().withUsername('carla.souza')))
  expect(found?.list).toMatchObject([{ id: expect.stringMatching(/@lid$/), contact: true }])
})
