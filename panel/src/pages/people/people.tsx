import { Button, Group } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call, callData } from '../../api/client.ts'
import { accountsQuery, sessionQuery } from '../../api/queries.ts'
import type { Account, InvitedAccount } from '../../api/types.ts'
import { useMay } from '../../api/use-role.ts'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { ReadProblem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { Card, Empty, PageHead } from '../../components/panels.tsx'
import { Time } from '../../components/time.tsx'
import { useTitle } from '../../components/title.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { AccountDialog, type Editing, LinkDialog } from './account-dialog.tsx'
import classes from './people.module.css'

export function People() {
  const words = useWords()
  const [editing, setEditing] = useState<Editing | null>(null)
  const [link, setLink] = useState<InvitedAccount | null>(null)
  const isOwner = useMay('owner')
  const { data: accounts, error, refetch } = useQuery(accountsQuery)
  useTitle(words.people.title)
  return (
    <>
      <PageHead
        title={words.people.title}
        action={isOwner && <Button onClick={() => setEditing('new')}>{words.people.invite}</Button>}
      >
        {words.people.hint}
      </PageHead>
      {editing !== null && <AccountDialog editing={editing} onClose={() => setEditing(null)} onInvited={setLink} />}
      {link && <LinkDialog invited={link} onClose={() => setLink(null)} />}
      <ReadProblem data={accounts} error={error} refetch={refetch} />
      {!accounts && !error && <Waiting />}
      {accounts?.length === 0 && <Empty title={words.people.none}>{words.people.noneText}</Empty>}
      {accounts && accounts.length > 0 && (
        <Card>
          <ul className={classes.people}>
            {accounts.map(account => (
              <Person key={account.id} account={account} onEdit={() => setEditing(account)} onLink={setLink} />
            ))}
          </ul>
        </Card>
      )}
    </>
  )
}

interface PersonProps {
  account: Account
  onEdit: () => void
  onLink: (link: InvitedAccount) => void
}

function Person({ account, onEdit, onLink }: PersonProps) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const { data: session } = useQuery(sessionQuery)
  const [asking, setAsking] = useState<'remove' | 'link' | null>(null)
  const { id, name, role, instances, active, invitationEndsAt } = account
  return (
    <li>
      <div>
        <strong>{name}</strong> <span className={classes.role}>{words.people.roles[role].name}</span>
        <div className={classes.about}>
          {instances === null ? words.people.allInstances : words.people.onlyInstances(instances.length)}
          {account.oidc && ` · ${words.people.withProvider}`}
          {!active && ` · ${words.people.notYet}`}
          {invitationEndsAt && (
            <>
              {' · '}
              {words.people.linkEnds} <Time at={invitationEndsAt} seconds={false} />
            </>
          )}
        </div>
      </div>
      <Group gap="xs">
        <Button variant="default" size="compact-sm" onClick={onEdit} aria-label={words.people.changeLabel(name)}>
          {words.people.change}
        </Button>
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => setAsking('link')}
          aria-label={words.people.newLinkLabel(name)}
        >
          {words.people.newLink}
        </Button>
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => setAsking('remove')}
          aria-label={words.people.removeLabel(name)}
        >
          {words.people.remove}
        </Button>
      </Group>
      <Confirm
        opened={asking === 'remove'}
        onClose={() => setAsking(null)}
        title={words.people.removeLabel(name)}
        action={words.people.remove}
        danger
        onConfirm={async () => {
          await call(`/accounts/${id}`, { method: 'DELETE' })
          void client.invalidateQueries(accountsQuery)
          void client.invalidateQueries(sessionQuery)
          toast(words.people.removed)
        }}
      >
        <p>{words.people.removeText}</p>
        {role === 'owner' && <p>{words.people.linksEnd}</p>}
        {account.panelPassword && <p>{words.people.passwordEnds}</p>}
        {!account.panelPassword && role === 'owner' && session?.passwordSet && <p>{words.people.passwordStays}</p>}
      </Confirm>
      <Confirm
        opened={asking === 'link'}
        onClose={() => setAsking(null)}
        title={words.people.newLinkLabel(name)}
        action={words.people.newLink}
        onConfirm={async () => {
          onLink(await callData<InvitedAccount>(`/accounts/${id}/invitation`, { method: 'POST' }))
          void client.invalidateQueries(accountsQuery)
        }}
      >
        {words.people.newLinkText}
      </Confirm>
    </li>
  )
}
