import java.sql.DriverManager;
import java.sql.ResultSet;

/** Prints rows of pgjdbc's DatabaseMetaData: a question per line, then its rows. */
public class Metadata {
    interface Question {
        ResultSet ask() throws Exception;
    }

    static void show(String name, Question question, String... columns) throws Exception {
        System.out.println("# " + name);
        try (var rows = question.ask()) {
            while (rows.next()) {
                var line = new StringBuilder();
                for (var column : columns) {
                    line.append(line.isEmpty() ? "" : "|").append(rows.getString(column));
                }
                System.out.println(line);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (var connection = DriverManager.getConnection(arguments[0])) {
            var data = connection.getMetaData();
            show("tables", () -> data.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"}),
                "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE");
            show("columns", () -> data.getColumns(null, "public", "items", "%"),
                "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS",
                "NULLABLE", "ORDINAL_POSITION");
            show("key", () -> data.getPrimaryKeys(null, "public", "items"),
                "TABLE_NAME", "COLUMN_NAME", "KEY_SEQ", "PK_NAME");
            show("indexes", () -> data.getIndexInfo(null, "public", "items", false, false),
                "NON_UNIQUE", "INDEX_NAME", "TYPE", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC");
            show("best", () -> data.getBestRowIdentifier(null, "public", "items", 2, true),
                "COLUMN_NAME", "TYPE_NAME");
            show("imported", () -> data.getImportedKeys(null, "public", "items"), "FK_NAME");
            show("exported", () -> data.getExportedKeys(null, "public", "items"), "FK_NAME");
            show("schemas", () -> data.getSchemas(), "TABLE_SCHEM");
            show("function", () -> data.getFunctions(null, null, "lower"), "FUNCTION_NAME");
            show("versions", () -> data.getVersionColumns(null, "public", "items"), "COLUMN_NAME");
            System.out.println(data.getSQLKeywords().contains("limit"));
            connection.setAutoCommit(false);
            try (var query = connection.prepareStatement("SELECT id FROM numbers ORDER BY id")) {
                query.setFetchSize(100);
                var rows = query.executeQuery();
                long sum = 0;
                while (rows.next()) {
                    sum += rows.getLong(1);
                }
                System.out.println("sum " + sum);
            }
            try (var add = connection.prepareStatement("INSERT INTO items (id, name) VALUES (?, ?)")) {
                for (int id = 50; id < 60; id++) {
                    add.setLong(1, id);
                    add.setString(2, "item " + id);
                    add.addBatch();
                }
                System.out.println("batch " + add.executeBatch().length);
            }
            connection.rollback();
            System.out.println("valid " + connection.isValid(30));
        }
    }
}
