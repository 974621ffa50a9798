// This file is empty: it lets functions of other packages be declared without a body.
