import { expect, it } from 'vitest'
import { startNetwork, startProgram } from '../program.ts'
import { until } from '../wait.ts'

const [ANA, CONTACT] = ['5511900000001', '5511999990001'] as const
const CHANNEL = '120363000000000001@newsletter'
const NO_GROUP = '120363000000000001@g.us'
const jid = (number: string) => `${number}@s.whatsapp.net`

/** Methods that the other tests of programs call, or that send nothing to WhatsApp. */
const ELSEWHERE = [
  /^generate|^waitFor|^send(Raw|Node|Unified|Retry|Receipts?$|MessageAck)|^end$|^register|^onUnexpected|^updateServerTime/,
  /^query$|^upsertMessage$|^appPatch$|^relayMessage$|^sendMessage$|^createParticipantNodes$|^assertSessions$|^uploadPreKeysToServerIfRequired$/,
  /^group|^rejectCall$|^readMessages$|^fetchMessageHistory$|^sendWAMBuffer$|^sendPresenceUpdate$|^presenceSubscribe$/,
  /^(update|remove|fetch)(Profile|Status|Block|GroupsAdd|ReadReceipts|Online|DefaultDisappearing|Disappearing|Privacy)/,
  /^profilePictureUrl$|^getBusinessProfile$|^requestPlaceholderResend$|^sendPeerDataOperationMessage$|^requestPairingCode$/,
  /^waUploadToServer$|^updateMediaMessage$|^executeUSyncQuery$|^logout$|^getMediaHost$/,
  // Methods of communities send the queries of groups. No community exists, so each is refused as for an unknown group.
  /^community(?!Create|Link|Unlink)/,
]

it('every method of a socket of Baileys has its effect or is refused, and none hangs', async () => {
  const simulator = await startNetwork([])
  const ana = await startProgram(simulator, ANA, 'Ana')
  const { sock } = ana
  await simulator.writeAs({ from: CONTACT, to: ANA, text: 'hello' })
  const { key, messageTimestamp } = await ana.received(({ message }) => message?.conversation === 'hello', 'the text')
  const chat = jid(CONTACT)
  const { id: group } = await sock.groupCreate('Lunch', [chat])
  const product = { name: 'x', description: 'x', price: 1, currency: 'BRL', images: [], isHidden: false }

  // biome-ignore lint/suspicious/noExplicitAny: only whether it is refused matters
  const succeed: Record<string, () => any> = {
    uploadPreKeys: () => sock.uploadPreKeys(5),
    digestKeyBundle: () => sock.digestKeyBundle(),
    rotateSignedPreKey: () => sock.rotateSignedPreKey(),
    onWhatsApp: () => sock.onWhatsApp(CONTACT),
    fetchAccountReachoutTimelock: () => sock.fetchAccountReachoutTimelock(),
    updateDisableLinkPreviewsPrivacy: () => sock.updateDisableLinkPreviewsPrivacy(true),
    updateCallPrivacy: () => sock.updateCallPrivacy('known'),
    updateMessagesPrivacy: () => sock.updateMessagesPrivacy('contacts'),
    updateLastSeenPrivacy: () => sock.updateLastSeenPrivacy('contacts'),
    updateMemberLabel: () => sock.updateMemberLabel(group, 'cook'),
    cleanDirtyBits: () => sock.cleanDirtyBits('account_sync'),
    addOrEditContact: () => sock.addOrEditContact(chat, { fullName: 'Carla', firstName: 'Carla' }),
    chatModify: () =>
      sock.chatModify({ archive: true, lastMessages: [{ key, messageTimestamp: messageTimestamp! }] }, chat),
    star: () => sock.star(chat, [{ id: key.id!, fromMe: false }], true),
    addLabel: () => sock.addLabel(chat, { id: '1', name: 'New', color: 1 }),
    addChatLabel: () => sock.addChatLabel(chat, '1'),
    removeChatLabel: () => sock.removeChatLabel(chat, '1'),
    addMessageLabel: () => sock.addMessageLabel(chat, key.id!, '1'),
    removeMessageLabel: () => sock.removeMessageLabel(chat, key.id!, '1'),
    addOrEditQuickReply: () => sock.addOrEditQuickReply({ shortcut: 'a', message: 'b' }),
    removeQuickReply: () => sock.removeQuickReply('1'),
    removeContact: () => sock.removeContact(jid('5511999990002')),
    resyncAppState: () => sock.resyncAppState(['regular_low', 'regular', 'regular_high'], false),
    issuePrivacyTokens: () => sock.issuePrivacyTokens([chat]),
    getUSyncDevices: () => sock.getUSyncDevices([chat], false, false),
    refreshMediaConn: () => sock.refreshMediaConn(true),
  }
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const refused: Record<string, () => any> = {
    createCallLink: () => sock.createCallLink('video'),
    getBotListV2: () => sock.getBotListV2(),
    fetchNewChatMessageCap: () => sock.fetchNewChatMessageCap(),
    getOrderDetails: () => sock.getOrderDetails('1', 'x'),
    getCatalog: () => sock.getCatalog({ jid: chat }),
    getCollections: () => sock.getCollections(chat),
    productCreate: () => sock.productCreate({ ...product, originCountryCode: 'BR' }),
    productUpdate: () => sock.productUpdate('1', product),
    productDelete: () => sock.productDelete(['1']),
    updateBussinesProfile: () => sock.updateBussinesProfile({ description: 'x' }),
    removeCoverPhoto: () => sock.removeCoverPhoto('1'),
    newsletterCreate: () => sock.newsletterCreate('n', 'd'),
    newsletterUpdate: () => sock.newsletterUpdate(CHANNEL, { name: 'n' }),
    newsletterSubscribers: () => sock.newsletterSubscribers(CHANNEL),
    newsletterMetadata: () => sock.newsletterMetadata('jid', CHANNEL),
    newsletterFollow: () => sock.newsletterFollow(CHANNEL),
    newsletterUnfollow: () => sock.newsletterUnfollow(CHANNEL),
    newsletterMute: () => sock.newsletterMute(CHANNEL),
    newsletterUnmute: () => sock.newsletterUnmute(CHANNEL),
    newsletterUpdateName: () => sock.newsletterUpdateName(CHANNEL, 'n'),
    newsletterUpdateDescription: () => sock.newsletterUpdateDescription(CHANNEL, 'd'),
    newsletterRemovePicture: () => sock.newsletterRemovePicture(CHANNEL),
    newsletterFetchMessages: () => sock.newsletterFetchMessages(CHANNEL, 10, 0, 0),
    subscribeNewsletterUpdates: () => sock.subscribeNewsletterUpdates(CHANNEL),
    newsletterAdminCount: () => sock.newsletterAdminCount(CHANNEL),
    newsletterChangeOwner: () => sock.newsletterChangeOwner(CHANNEL, chat),
    newsletterDemote: () => sock.newsletterDemote(CHANNEL, chat),
    newsletterDelete: () => sock.newsletterDelete(CHANNEL),
    communityCreate: () => sock.communityCreate('Town', 'All'),
    communityCreateGroup: () => sock.communityCreateGroup('Street', [chat], NO_GROUP),
    communityLinkGroup: () => sock.communityLinkGroup(group, NO_GROUP),
    communityUnlinkGroup: () => sock.communityUnlinkGroup(group, NO_GROUP),
  }
  // Refused as well, but Baileys does not report the refusal, or uploads a picture first.
  const untested = ['newsletterReactMessage', 'newsletterUpdatePicture', 'updateCoverPhoto']

  const callable = Object.entries(sock).flatMap(([name, value]) => (typeof value === 'function' ? name : []))
  const known = new Set([...Object.keys(succeed), ...Object.keys(refused), ...untested])
  expect(callable.filter(name => !known.has(name) && !ELSEWHERE.some(one => one.test(name)))).toEqual([])

  for (const call of Object.values(succeed)) await call()
  for (const [name, call] of Object.entries(refused))
    await expect(call(), name).rejects.toThrow(/bad-request|Bad Request|forbidden/)

  // Another client of the account finds what was changed.
  await simulator.unlink(ANA)
  const next = await startProgram(simulator, ANA, 'Ana')
  const contacts = () => [
    ...next.all('contacts.upsert').flat(),
    ...next.all('contacts.update').flat(),
    ...next.all('messaging-history.set').flatMap(history => history.contacts),
  ]
  await until(() => contacts().some(({ name }) => name === 'Carla'), 'the saved contact')
})
