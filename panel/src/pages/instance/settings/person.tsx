import { Button, Group, Stack, TextInput } from '@mantine/core'
import { useState } from 'react'
import { ADMIN, callData } from '../../../api/client.ts'
import type { ErasedContact } from '../../../api/types.ts'
import { Confirm } from '../../../components/feedback/confirm.tsx'
import { useToast } from '../../../components/feedback/toasts.tsx'
import { Card } from '../../../components/panels.tsx'
import { recipientText } from '../../../components/recipients/recipient.tsx'
import { useWords } from '../../../i18n/i18n.tsx'

/** A number in E.164 form, or a LID. The service decides. */
const PERSON = /^([1-9]\d{6,14}|\d{1,20}@lid)$/

/** Exports and erases the data stored about one person. */
export function PersonCard({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const { person: texts } = words
  const toast = useToast()
  const [typed, setTyped] = useState('')
  const [isAsking, setAsking] = useState(false)
  const contact = typed.trim().replace(/^\+/, '')
  const isPerson = PERSON.test(contact)
  const path = `/instances/${instanceId}/contacts/${contact}`
  return (
    <Card title={texts.title} hint={texts.hint}>
      <Stack gap="sm">
        <TextInput
          label={texts.contact}
          description={texts.contactHint}
          value={typed}
          maxLength={64}
          onChange={event => setTyped(event.currentTarget.value)}
          error={typed.trim() !== '' && !isPerson && texts.notAPerson}
          autoComplete="off"
        />
        <Group>
          {isPerson ? (
            <Button component="a" variant="default" href={`${ADMIN}${path}/export`} download>
              {texts.export}
            </Button>
          ) : (
            <Button variant="default" disabled>
              {texts.export}
            </Button>
          )}
          <Button color="red" variant="light" disabled={!isPerson} onClick={() => setAsking(true)}>
            {texts.erase}
          </Button>
        </Group>
      </Stack>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={texts.eraseTitle}
        action={texts.eraseAction}
        danger
        typed={contact}
        onConfirm={async () => {
          const { messages, kept } = await callData<ErasedContact>(path, { method: 'DELETE' })
          const name = recipientText(contact, words)
          toast(kept === 0 ? texts.erased(name, messages) : texts.erasedPartly(name, messages, kept))
        }}
      >
        <ul>
          {texts.eraseText.map(line => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      </Confirm>
    </Card>
  )
}
