import { TextInput, type TextInputProps } from '@mantine/core'
import { useState } from 'react'
import { useWords } from '../../i18n/i18n.tsx'

interface UrlFieldProps extends TextInputProps {
  value: string
  onType: (value: string) => void
  /** The form was submitted, so an empty field is wrong too. */
  isTried?: boolean
}

/** The URL of an endpoint. It says what is wrong when the field is left. */
export function UrlField({ value, onType, isTried = false, ...rest }: UrlFieldProps) {
  const { webhook } = useWords()
  const [isLeft, setLeft] = useState(false)
  const isChecked = isTried || (isLeft && value.trim() !== '')
  return (
    <TextInput
      label={webhook.url}
      placeholder="https://example.com/webhooks/pombal"
      inputMode="url"
      value={value}
      maxLength={2048}
      spellCheck={false}
      autoComplete="off"
      onChange={event => onType(event.currentTarget.value)}
      onBlur={() => setLeft(true)}
      error={isChecked && !isUrl(value) && webhook.urlWrong}
      {...rest}
    />
  )
}

/** A quick check of the text without the spaces around it. The service validates the URL. */
export function isUrl(value: string): boolean {
  const text = value.trim()
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  return url !== null && url.hostname !== '' && url.username === ''
}
