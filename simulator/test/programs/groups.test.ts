import type { Simulator } from '@pombal/simulator'
import { beforeEach, expect, it } from 'vitest'
import { type Program, startNetwork, startProgram } from '../program.ts'
import { until } from '../wait.ts'

const [ANA, RUI, EVA] = ['5511900000001', '5511900000002', '5511900000003'] as const
const CONTACT = '5511999990001'
const jid = (number: string) => `${number}@s.whatsapp.net`

let simulator: Simulator
let ana: Program
let rui: Program
let group: string

beforeEach(async () => {
  simulator = await startNetwork()
  ana = await startProgram(simulator, ANA, 'Ana')
  rui = await startProgram(simulator, RUI, 'Rui')
  group = (await ana.sock.groupCreate('Lunch', [rui.jid])).id
  await until(() => rui.all('groups.upsert').flat().length > 0, 'the group')
})

const updates = (program: Program) => program.all('groups.update').flat()
/** Waits until the program has been notified of a part of the group. */
const learns = (program: Program, part: object) =>
  until(
    () =>
      updates(program).some(update =>
        Object.entries(part).every(([name, value]) => Reflect.get(update, name) === value),
      ),
    JSON.stringify(part),
  )
const joins = (program: Program, action: string, number: string) =>
  until(
    () =>
      program
        .all('group-participants.update')
        .some(update => update.action === action && update.participants.some(one => one.phoneNumber === jid(number))),
    `${action} ${number}`,
  )

it('the other member is notified of the subject, the description and every setting, and reads them in the group', async () => {
  await ana.sock.groupUpdateSubject(group, 'Dinner')
  await learns(rui, { subject: 'Dinner' })
  await ana.sock.groupUpdateDescription(group, 'At eight')
  await learns(rui, { desc: 'At eight' })
  await ana.sock.groupUpdateDescription(group, 'At nine')
  await learns(rui, { desc: 'At nine' })
  for (const [setting, part] of [
    ['announcement', { announce: true }],
    ['locked', { restrict: true }],
  ] as const) {
    await ana.sock.groupSettingUpdate(group, setting)
    await learns(rui, part)
  }
  await ana.sock.groupMemberAddMode(group, 'all_member_add')
  await learns(rui, { memberAddMode: true })
  await ana.sock.groupJoinApprovalMode(group, 'on')
  await learns(rui, { joinApprovalMode: true })
  await ana.sock.groupToggleEphemeral(group, 86_400)
  await rui.received(({ message }) => message?.protocolMessage?.ephemeralExpiration === 86_400, 'the timer')
  expect(await rui.sock.groupMetadata(group)).toMatchObject({
    subject: 'Dinner',
    subjectOwnerPn: ana.jid,
    desc: 'At nine',
    descOwnerPn: ana.jid,
    announce: true,
    restrict: true,
    memberAddMode: true,
    joinApprovalMode: true,
    ephemeralDuration: 86_400,
  })
  await ana.sock.groupUpdateDescription(group)
  for (const setting of ['not_announcement', 'unlocked'] as const) await ana.sock.groupSettingUpdate(group, setting)
  await ana.sock.groupToggleEphemeral(group, 0)
  const after = await rui.sock.groupMetadata(group)
  expect(after).toMatchObject({ announce: false, restrict: false })
  expect(after).not.toMatchObject({ desc: expect.anything() })
  expect(after.ephemeralDuration).toBeUndefined()
})

it('a member without rights is refused, and changes nothing', async () => {
  await rui.sock.groupUpdateSubject(group, 'Every member may')
  await ana.sock.groupSettingUpdate(group, 'locked')
  await ana.sock.groupSettingUpdate(group, 'announcement')
  const before = await ana.sock.groupMetadata(group)
  for (const attempt of [
    () => rui.sock.groupUpdateSubject(group, 'x'),
    () => rui.sock.groupUpdateDescription(group, 'x'),
    () => rui.sock.groupSettingUpdate(group, 'not_announcement'),
    () => rui.sock.groupMemberAddMode(group, 'all_member_add'),
    () => rui.sock.groupJoinApprovalMode(group, 'on'),
    () => rui.sock.groupToggleEphemeral(group, 60),
    () => rui.sock.groupParticipantsUpdate(group, [jid(CONTACT)], 'add'),
    () => rui.sock.groupRequestParticipantsList(group),
  ])
    await expect(attempt()).rejects.toThrow('forbidden')
  await expect(rui.sock.groupInviteCode(group)).rejects.toThrow('not-authorized')
  expect(await ana.sock.groupMetadata(group)).toEqual(before)
  const sent = (await rui.sock.sendMessage(group, { text: 'only admins write' }))!
  // Baileys merges a quick refusal into its event of the message.
  const statuses = () => [
    ...rui
      .all('messages.update')
      .flat()
      .map(({ key, update }) => key.id === sent.key.id && update.status),
    ...rui
      .all('messages.upsert')
      .flatMap(({ messages }) => messages.map(one => one.key.id === sent.key.id && one.status)),
  ]
  await until(() => statuses().includes(0), 'the refusal')
  await expect(simulator.writeAs({ from: CONTACT, to: ANA, group, text: 'x' })).rejects.toMatchObject({
    code: 'not_a_member',
  })
})

it('a client that has the code can look at the group and join it, until the code is revoked', async () => {
  const eva = await startProgram(simulator, EVA, 'Eva')
  const code = (await ana.sock.groupInviteCode(group))!
  expect(await ana.sock.groupInviteCode(group)).toBe(code)
  expect(await eva.sock.groupGetInviteInfo(code)).toMatchObject({ id: group, subject: 'Lunch', size: 2 })
  await expect(eva.sock.groupMetadata(group)).rejects.toThrow('forbidden')
  const other = (await ana.sock.groupRevokeInvite(group))!
  expect(other).not.toBe(code)
  await learns(rui, { inviteCode: other })
  await expect(eva.sock.groupAcceptInvite(code)).rejects.toThrow('gone')
  await expect(eva.sock.groupGetInviteInfo('AAAAAAAAAAAAAAAAAAAAAA')).rejects.toThrow('not-acceptable')
  expect(await eva.sock.groupAcceptInvite(other)).toBe(group)
  await joins(rui, 'add', EVA)
  await until(() =>
    eva
      .all('groups.upsert')
      .flat()
      .some(({ id }) => id === group),
  )
  await eva.sock.sendMessage(group, { text: 'hello all' })
  await rui.received(({ message }) => message?.extendedTextMessage?.text === 'hello all', 'her text')
  await expect(eva.sock.groupAcceptInvite(other)).rejects.toThrow('conflict')
  await eva.sock.groupLeave(group)
  await joins(rui, 'remove', EVA)
  await expect(eva.sock.groupMetadata(group)).rejects.toThrow('forbidden')
})

it('with approval, those who join wait until an admin decides', async () => {
  const eva = await startProgram(simulator, EVA, 'Eva')
  await ana.sock.groupJoinApprovalMode(group, 'on')
  const code = (await ana.sock.groupInviteCode(group))!
  for (const [action, isIn] of [
    ['reject', false],
    ['approve', true],
  ] as const) {
    expect(await eva.sock.groupAcceptInvite(code)).toBeUndefined()
    await until(
      () => ana.all('group.join-request').some(({ participantPn }) => participantPn === eva.jid),
      'the request',
    )
    expect(await ana.sock.groupRequestParticipantsList(group)).toMatchObject([
      { jid: eva.lid, request_method: 'invite_link' },
    ])
    expect(await ana.sock.groupRequestParticipantsUpdate(group, [eva.lid], action)).toEqual([
      { status: '200', jid: eva.lid },
    ])
    expect(await ana.sock.groupRequestParticipantsList(group)).toEqual([])
    const { participants } = await rui.sock.groupMetadata(group)
    expect(participants.some(({ phoneNumber }) => phoneNumber === eva.jid)).toBe(isIn)
  }
  expect(await ana.sock.groupRequestParticipantsUpdate(group, [eva.lid], 'approve')).toMatchObject([{ status: '404' }])
  await joins(rui, 'add', EVA)
})

it('contacts create and change groups, within their rights, and clients see it', async () => {
  const { group: theirs } = await simulator.createGroup(CONTACT, 'Ours', [ANA, '5511999990002'])
  await until(() =>
    ana
      .all('groups.upsert')
      .flat()
      .some(({ id }) => id === theirs),
  )
  await simulator.changeGroup(theirs, { promote: [ANA], subject: 'Yours', approval: true, invite: 'get' })
  await joins(ana, 'promote', ANA)
  await learns(ana, { subject: 'Yours' })
  const { invite } = await simulator.group(theirs)
  await simulator.changeGroup(theirs, { by: '5511999990003', join: invite! })
  expect(await ana.sock.groupRequestParticipantsList(theirs)).toHaveLength(1)
  const change = simulator.changeGroup(theirs, { by: '5511999990002', announcement: true })
  await expect(change).rejects.toMatchObject({ code: 'invalid_argument', message: 'refused: 403 forbidden' })
  const state = await simulator.changeGroup(theirs, { approve: ['5511999990003'] })
  expect(state.members.map(({ number }) => number)).toEqual([CONTACT, ANA, '5511999990002', '5511999990003'])
  await simulator.changeGroup(theirs, { remove: [ANA] })
  await joins(ana, 'remove', ANA)
  await expect(ana.sock.groupMetadata(theirs)).rejects.toThrow('forbidden')

  const any = '120363000000000777@g.us'
  await simulator.changeGroup(any, { account: ANA, promote: [ANA], description: 'Any group' })
  expect(await ana.sock.groupMetadata(any)).toMatchObject({ desc: 'Any group' })
  await ana.sock.groupUpdateSubject(any, 'Mine now')
  expect(await simulator.group(any, ANA)).toMatchObject({ subject: 'Mine now', description: 'Any group' })
})
