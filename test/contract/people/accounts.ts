import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Role } from '../../../src/domain/access.ts'
import { newAccountId } from '../../../src/domain/ids.ts'
import type { Identity } from '../../../src/store/accounts/accounts.ts'
import type { Store } from '../../../src/store/store.ts'
import type { CreateHarness } from '../harness.ts'
import { newEntry } from './audit.ts'

const HASH = 'scrypt$of a password'
const HOUR_MS = 60 * 60_000

function invitation(lastsMs = HOUR_MS, invitedBy: string | null = null) {
  return { digest: randomBytes(32), lastsMs, invitedBy }
}

async function createAccount(store: Store, name: string, role: Role = 'viewer', instances: string[] | null = null) {
  const open = invitation()
  const account = await store.accounts.create({ id: newAccountId(), name, role, instances }, open, 5)
  if (typeof account !== 'object') throw new Error(`The account was not created: ${account}.`)
  return { account, digest: open.digest }
}

async function createActive(store: Store, name: string, role: Role = 'viewer', instances: string[] | null = null) {
  const { digest } = await createAccount(store, name, role, instances)
  return (await store.accounts.accept(digest, HASH))!
}

function identity(subject: string): Identity {
  return { issuer: 'https://login.example', subject }
}

/** @param boundIdentity is used instead of the password */
async function signIn(store: Store, accountId: string, passwordHash = HASH, boundIdentity: Identity | null = null) {
  const tokenDigest = randomBytes(32)
  const session = {
    id: `ses_${randomBytes(8).toString('hex')}`,
    createdAt: 1_000,
    expiresAt: 2_000,
    userAgent: null,
    accountId,
    passwordHash: boundIdentity ? null : passwordHash,
    identity: boundIdentity,
    tokenDigest,
  }
  const created = await store.sessions.create(session)
  return { id: session.id, created, find: () => store.sessions.find(tokenDigest, 1_500) }
}

export function accountsContract(createHarness: CreateHarness): void {
  describe('accounts', () => {
    /** Each test has a store of its own, because the last owner is one of all accounts. */
    async function withOwnStore(run: (store: Store) => Promise<void>): Promise<void> {
      const harness = await createHarness()
      try {
        await run(await harness.open())
      } finally {
        await harness.dispose()
      }
    }

    test('are active once their invitation is accepted, which works once', () =>
      withOwnStore(async store => {
        const { account, digest } = await createAccount(store, 'Ana@Example.com', 'operator', ['inst_1', 'inst_2'])
        expect(account).toMatchObject({ role: 'operator', instances: ['inst_1', 'inst_2'], isActive: false })
        expect(await store.accounts.findForSignIn('ana@example.com')).toBeNull()
        expect(await store.accounts.findInvited(digest)).toEqual(account)
        expect(await store.accounts.findInvited(digest)).toEqual(account)
        const accepted = await Promise.all([1, 2, 3].map(count => store.accounts.accept(digest, `${HASH} ${count}`)))
        expect(accepted.filter(Boolean)).toMatchObject([{ id: account.id, isActive: true, invitationEndsAt: null }])
        expect(await store.accounts.findInvited(digest)).toBeNull()
        const found = await store.accounts.findForSignIn(' ANA@example.COM ')
        expect(found).toMatchObject({ account: { id: account.id }, passwordHash: expect.stringContaining(HASH) })
      }))

    test('cannot be activated with a link that has ended or was replaced', () =>
      withOwnStore(async store => {
        const { account, digest } = await createAccount(store, 'Ana')
        const ended = invitation(-1)
        await store.accounts.invite(account.id, ended)
        for (const old of [digest, ended.digest]) {
          expect(await store.accounts.findInvited(old)).toBeNull()
          expect(await store.accounts.accept(old, HASH)).toBeNull()
        }
        expect(await store.accounts.invite('acc_missing', invitation())).toBeNull()
      }))

    test('have names that differ by more than case', () =>
      withOwnStore(async store => {
        await createAccount(store, 'Zoe')
        await createAccount(store, 'ana')
        const again = { id: newAccountId(), name: 'ANA', role: 'viewer' as const, instances: null }
        expect(await store.accounts.create(again, invitation(), 5)).toBe('exists')
        expect((await store.accounts.list()).map(({ name }) => name)).toEqual(['ana', 'Zoe'])
      }))

    test('the last active owner can be neither removed nor limited, even when two try it at the same time', () =>
      withOwnStore(async store => {
        const one = await createActive(store, 'one', 'owner')
        await createAccount(store, 'invited', 'owner')
        const viewer = { role: 'viewer' as const, instances: null }
        expect(await store.accounts.remove(one.id)).toEqual({ kind: 'last_owner' })
        expect(await store.accounts.change(one.id, viewer)).toEqual({ kind: 'last_owner' })
        const two = await createActive(store, 'two', 'owner')
        const outcomes = await Promise.all([store.accounts.remove(one.id), store.accounts.change(two.id, viewer)])
        expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['changed', 'last_owner'])
        const owners = (await store.accounts.list()).filter(({ role, isActive }) => role === 'owner' && isActive)
        expect(owners).toHaveLength(1)
        expect(await store.accounts.remove('acc_missing')).toEqual({ kind: 'no_account' })
      }))

    test('an owner is never limited to instances', () =>
      withOwnStore(async store => {
        const owner = await createActive(store, 'owner', 'owner', ['inst_1'])
        expect(owner.instances).toBeNull()
        const limited = await createActive(store, 'limited', 'viewer', [])
        expect(limited.instances).toEqual([])
      }))

    test('a session carries the access of its account as it is now, and ends with the account', () =>
      withOwnStore(async store => {
        const { id } = await createActive(store, 'Ana', 'operator', ['inst_1'])
        const session = await signIn(store, id)
        expect((await session.find())?.account).toEqual({ id, name: 'Ana', role: 'operator', instances: ['inst_1'] })
        await store.accounts.change(id, { role: 'viewer', instances: ['inst_2'] })
        expect((await session.find())?.account).toMatchObject({ role: 'viewer', instances: ['inst_2'] })
        await store.accounts.remove(id)
        expect(await session.find()).toBeNull()
        expect((await signIn(store, id)).created).toBe(false)
      }))

    test('a new password ends the sessions, and a sign-in with the old one that is still running', () =>
      withOwnStore(async store => {
        const { id } = await createActive(store, 'Ana')
        const session = await signIn(store, id)
        const again = invitation()
        await store.accounts.invite(id, again)
        expect(await session.find()).not.toBeNull()
        await store.accounts.accept(again.digest, 'scrypt$new')
        expect(await session.find()).toBeNull()
        expect((await signIn(store, id, HASH)).created).toBe(false)
        expect((await signIn(store, id, 'scrypt$new')).created).toBe(true)
      }))

    test('a person who changes their own password ends their other sessions and running sign-ins', () =>
      withOwnStore(async store => {
        const [ana, zoe] = [await createActive(store, 'Ana'), await createActive(store, 'Zoe')]
        const [kept, other, foreign] = [
          await signIn(store, ana.id),
          await signIn(store, ana.id),
          await signIn(store, zoe.id),
        ]
        const change = (old: string, next: string) => store.accounts.changePassword(ana.id, { old, new: next }, kept.id)
        expect(await change('scrypt$wrong', 'scrypt$new')).toBe('wrong_password')
        for (const session of ['ended', foreign.id]) {
          const hashes = { old: HASH, new: 'scrypt$new' }
          expect(await store.accounts.changePassword(ana.id, hashes, session)).toBe('signed_out')
        }
        expect(await other.find()).not.toBeNull()
        expect((await Promise.all([change(HASH, 'scrypt$one'), change(HASH, 'scrypt$two')])).sort()).toEqual([
          'changed',
          'wrong_password',
        ])
        expect(await other.find()).toBeNull()
        expect([await kept.find(), await foreign.find()]).not.toContain(null)
        expect((await signIn(store, ana.id, HASH)).created).toBe(false)
        expect((await store.accounts.findForSignIn('zoe'))?.passwordHash).toBe(HASH)
      }))

    test('a person who changes their own password ends an open link for setting it', () =>
      withOwnStore(async store => {
        const { id } = await createActive(store, 'Ana')
        const open = invitation()
        await store.accounts.invite(id, open)
        const { id: session } = await signIn(store, id)
        expect(await store.accounts.changePassword(id, { old: 'scrypt$wrong', new: HASH }, session)).not.toBe('changed')
        expect(await store.accounts.findInvited(open.digest)).not.toBeNull()
        expect(await store.accounts.changePassword(id, { old: HASH, new: 'scrypt$new' }, session)).toBe('changed')
        expect(await store.accounts.accept(open.digest, 'scrypt$foreign')).toBeNull()
        expect(await store.accounts.list()).toMatchObject([{ id, invitationEndsAt: null }])
      }))

    test('an identity is bound to one account until the account is removed, and signs in while it is bound', () =>
      withOwnStore(async store => {
        const { accounts } = store
        const { account } = await createAccount(store, 'Ana@Example.com', 'owner')
        const [ana, other] = [identity('ana'), identity('other')]
        expect(await accounts.findByIdentity(ana)).toBeNull()
        expect(await accounts.findByName('ana@example.com')).toEqual(account)
        expect(await Promise.all([1, 2, 3].map(() => accounts.bind(account.id, ana, 5)))).toEqual(
          Array(3).fill('bound'),
        )
        const bound = { ...account, isActive: true, hasIdentity: true, invitationEndsAt: null }
        expect(await accounts.findByIdentity(ana)).toEqual(bound)
        expect(await accounts.list()).toEqual([bound])
        expect(await accounts.findForSignIn('ana@example.com')).toBeNull()
        expect(await accounts.bind(account.id, other, 5)).toBe('other_login')
        expect(await accounts.bind(account.id, { ...other, issuer: 'https://new.example' }, 5)).toBe('bound')
        const { account: zoe } = await createAccount(store, 'Zoe')
        expect(await accounts.bind(zoe.id, ana, 5)).toBe('taken')
        expect(await accounts.bind('acc_missing', other, 5)).toBe('no_account')
        expect(await accounts.remove(account.id)).toEqual({ kind: 'last_owner' })

        expect((await signIn(store, zoe.id, HASH, ana)).created).toBe(false)
        const session = await signIn(store, account.id, HASH, ana)
        expect((await session.find())?.account).toMatchObject({ id: account.id })
        await createActive(store, 'second', 'owner')
        await accounts.remove(account.id)
        expect([await session.find(), await accounts.findByIdentity(ana)]).toEqual([null, null])
        expect((await signIn(store, account.id, HASH, ana)).created).toBe(false)
        expect(await accounts.bind(zoe.id, ana, 5)).toBe('bound')
      }))

    test('of two accounts that an identity is bound to at the same time, one gets it', () =>
      withOwnStore(async store => {
        const created = [await createAccount(store, 'Ana'), await createAccount(store, 'Zoe')]
        const outcomes = await Promise.all(
          created.map(({ account }) => store.accounts.bind(account.id, identity('x'), 5)),
        )
        expect(outcomes.sort()).toEqual(['bound', 'taken'])
      }))

    test('an invitation that is accepted with an identity replaces the password and the identity, and ends the sessions', () =>
      withOwnStore(async store => {
        const { accounts } = store
        const { account } = await createAccount(store, 'Ana')
        const { id } = account
        const former = { issuer: 'https://former.example', subject: 'old' }
        for (const bound of [identity('old'), former]) await accounts.bind(id, bound, 5)
        const sessions = [await signIn(store, id, HASH, identity('old')), await signIn(store, id, HASH, former)]
        const { digest: foreign } = await createAccount(store, 'Zoe')
        expect(await accounts.acceptWith(foreign, identity('old'), 5)).toBe('taken')
        expect(await accounts.findInvited(foreign)).not.toBeNull()

        const open = invitation()
        await accounts.invite(id, open)
        const accepted = await Promise.all([1, 2, 3].map(() => accounts.acceptWith(open.digest, identity('new'), 5)))
        expect(accepted.filter(Boolean)).toMatchObject([
          { id, isActive: true, hasIdentity: true, invitationEndsAt: null },
        ])
        for (const session of sessions) expect(await session.find()).toBeNull()
        expect(await accounts.findForSignIn('Ana')).toBeNull()
        expect([await accounts.findByIdentity(identity('old')), (await signIn(store, id)).created]).toEqual([
          null,
          false,
        ])
        for (const old of [identity('old'), former]) {
          expect((await signIn(store, id, HASH, old)).created).toBe(false)
        }
        expect((await signIn(store, id, HASH, identity('new'))).created).toBe(true)
        expect(await accounts.acceptWith(invitation().digest, identity('x'), 5)).toBeNull()
      }))

    test('an invitation that is accepted with a password unbinds every identity, and an identity is not bound beside a password', () =>
      withOwnStore(async store => {
        const { accounts } = store
        const { account } = await createAccount(store, 'Ana')
        const { id } = account
        const old = [identity('old'), { issuer: 'https://former.example', subject: 'old' }]
        for (const bound of old) expect(await accounts.bind(id, bound, 5)).toBe('bound')
        const session = await signIn(store, id, HASH, old[0])
        const open = invitation()
        await accounts.invite(id, open)
        expect(await accounts.accept(open.digest, HASH)).toMatchObject({ id, isActive: true, hasIdentity: false })
        expect(await session.find()).toBeNull()
        for (const unbound of old) {
          expect(await accounts.findByIdentity(unbound)).toBeNull()
          expect((await signIn(store, id, HASH, unbound)).created).toBe(false)
          expect(await accounts.bind(id, unbound, 5)).toBe('other_login')
        }
        expect((await signIn(store, id)).created).toBe(true)

        // If a password and an identity are set at the same time, the account has only one of them in the end.
        for (let n = 0; n < 5; n += 1) {
          const { account: other, digest } = await createAccount(store, `other ${n}`)
          const own = identity(`other ${n}`)
          await Promise.all([accounts.accept(digest, HASH), accounts.bind(other.id, own, 5)])
          const hasPassword = (await accounts.findForSignIn(`other ${n}`)) !== null
          expect((await accounts.findByIdentity(own)) !== null).toBe(!hasPassword)
        }
      }))

    test('when an owner leaves or stops being an owner, the panel password that the owner set is removed', () =>
      withOwnStore(async store => {
        const { accounts, sessions } = store
        const [one, two, three] = [
          await createActive(store, 'one', 'owner'),
          await createActive(store, 'two', 'owner'),
          await createActive(store, 'three', 'owner'),
        ]
        const openPanel = async () => {
          const tokenDigest = randomBytes(32)
          const session = { id: 'ses_panel', createdAt: 1, expiresAt: 2_000, userAgent: null, tokenDigest }
          await sessions.create({ ...session, accountId: null, passwordHash: await sessions.findPasswordHash() })
          return () => sessions.find(tokenDigest, 1_500)
        }
        expect(await sessions.setPasswordHash(HASH, null, one.id)).toBe('changed')
        const find = await openPanel()
        await accounts.remove(two.id)
        await accounts.change(one.id, { role: 'owner', instances: null })
        expect([await sessions.findPasswordSetter(), await sessions.findPasswordHash()]).toEqual([one.id, HASH])
        expect(await find()).not.toBeNull()
        await accounts.change(one.id, { role: 'operator', instances: null })
        expect([await sessions.findPasswordSetter(), await sessions.findPasswordHash()]).toEqual([null, null])
        expect(await find()).toBeNull()
        for (const id of [one.id, two.id]) expect(await sessions.setPasswordHash(HASH, null, id)).toBe('not_owner')
        expect(await sessions.findPasswordHash()).toBeNull()

        await accounts.change(one.id, { role: 'owner', instances: null })
        await sessions.setPasswordHash(HASH, null, three.id)
        await sessions.setPasswordHash(HASH, null)
        await accounts.remove(three.id)
        expect(await sessions.findPasswordHash()).toBe(HASH)
      }))

    test('when an owner leaves or stops being an owner, the open links that the owner may know end', () =>
      withOwnStore(async store => {
        const { accounts } = store
        const [one, two, viewer] = [
          await createActive(store, 'one', 'owner'),
          await createActive(store, 'two', 'owner'),
          await createActive(store, 'viewer'),
        ]
        const { account: created, digest: ofCreated } = await createAccount(store, 'created', 'owner')
        const [ofOne, ofTwo] = [invitation(HOUR_MS, one.id), invitation(HOUR_MS, two.id)]
        await accounts.invite(two.id, ofOne)
        await accounts.invite(viewer.id, ofTwo)
        await accounts.change(one.id, { role: 'owner', instances: null })
        await accounts.change(created.id, { role: 'owner', instances: null })
        for (const digest of [ofOne.digest, ofTwo.digest, ofCreated])
          expect(await accounts.findInvited(digest)).not.toBeNull()

        await accounts.change(one.id, { role: 'operator', instances: null })
        for (const digest of [ofOne.digest, ofCreated]) expect(await accounts.accept(digest, HASH)).toBeNull()
        expect(await accounts.findInvited(ofTwo.digest)).toMatchObject({ id: viewer.id })
        const late = invitation(HOUR_MS, one.id)
        expect(await accounts.invite(two.id, late)).toBe('not_owner')
        const third = { id: newAccountId(), name: 'third', role: 'owner' as const, instances: null }
        expect(await accounts.create(third, late, 5)).toBe('not_owner')

        await createActive(store, 'four', 'owner')
        const race = invitation(HOUR_MS, two.id)
        await Promise.all([accounts.remove(two.id), accounts.invite(created.id, race)])
        for (const digest of [ofTwo.digest, race.digest]) expect(await accounts.accept(digest, HASH)).toBeNull()
      }))

    test('the 101st session of an account ends its oldest one', () =>
      withOwnStore(async store => {
        const [{ id }, other] = [await createActive(store, 'Ana'), await createActive(store, 'Bea')]
        const others = await signIn(store, other.id)
        const session = { accountId: id, passwordHash: HASH, expiresAt: 2_000, userAgent: null }
        for (let at = 1; at <= 101; at += 1)
          await store.sessions.create({ ...session, id: `ses_${at}`, createdAt: at, tokenDigest: randomBytes(32) })
        const ids = (await store.sessions.list(id, 1_500)).map(listed => listed.id)
        expect([ids.length, ids[0], ids.at(-1)]).toEqual([100, 'ses_101', 'ses_2'])
        expect(await others.find()).not.toBeNull()
      }))

    test('sessions are listed and ended by account', () =>
      withOwnStore(async store => {
        const [ana, zoe] = [await createActive(store, 'Ana'), await createActive(store, 'Zoe')]
        const [one, two, other] = [
          await signIn(store, ana.id),
          await signIn(store, ana.id),
          await signIn(store, zoe.id),
        ]
        expect((await store.sessions.list(ana.id, 1_500)).map(({ id }) => id).sort()).toEqual([one.id, two.id].sort())
        expect(await store.sessions.list(null, 1_500)).toEqual([])
        await store.sessions.end(other.id, ana.id)
        await store.sessions.endOthers(ana.id, two.id)
        await store.sessions.endOthers(null, null)
        expect(await one.find()).toBeNull()
        expect([await two.find(), await other.find()]).not.toContain(null)
        expect(await store.sessions.list(zoe.id, 2_000)).toEqual([])
      }))

    test('changes are recorded in the audit with their commit, refused ones are not', () =>
      withOwnStore(async store => {
        const owner = await createActive(store, 'owner', 'owner')
        await store.audit.during(newEntry(), () => store.accounts.remove(owner.id))
        await store.audit.during(newEntry({ action: 'changeAccount' }), () =>
          store.accounts.change(owner.id, { role: 'owner', instances: null }),
        )
        const { data } = await store.audit.list({ limit: 10 }, {})
        expect(data.map(({ action }) => action)).toEqual(['changeAccount'])
      }))
  })
}
